/* An external I/O engine of fio whose device is a simulated drive, in virtual time.
 *
 * The preloaded object answers clock_gettime and nanosleep of the job's thread with the drive's time. The generator,
 * rates, think times and statistics of fio therefore run on that clock, and the report of fio has the latencies of the
 * drive. With verify=, cells store bytes, and fio verifies all reads.
 *
 *   cc -shared -fPIC -O2 -D_GNU_SOURCE -include $FIO/config-host.h -I$FIO palimpsest_engine.c \
 *       $(pkg-config --cflags --libs palimpsest) -o palimpsest_engine.so
 *   LD_PRELOAD=./palimpsest_engine.so fio --clocksource=clock_gettime --ioengine=external:./palimpsest_engine.so \
 *       --ssd=default --name=job --rw=randwrite --bs=4k --iodepth=8 --size=1g --number_ios=10000
 *
 * $FIO is the source of the same version of fio, after its configure with the options of the installed fio.
 *
 * Ignored: more than one job or file, zones, and the processor time of fio, which passes none of the drive's time.
 */
#include "fio.h"
#include "optgroup.h"
#include "verify.h"
#include <dlfcn.h>
#include <palimpsest.h>
#include <sys/syscall.h>

/* Readings of the clock without I/O after which the job must be waiting for the clock in a loop, perhaps with sleeps of
 * no time; then and after every few further readings, some time passes. */
#define IDLE_READINGS 1000
#define IDLE_FURTHER 10
#define IDLE_STEP_NS 1000

struct engine_options {
    void *pad; /* fio's parser needs an offset other than 0 */
    char *ssd, *ftl, *set, *precondition, *result;
};

#define OPTION(member, text)                                                                        \
    {                                                                                               \
        .name = #member, .lname = #member, .type = FIO_OPT_STR_STORE,                               \
        .off1 = offsetof(struct engine_options, member), .help = text, .category = FIO_OPT_C_ENGINE, \
        .group = FIO_OPT_G_INVALID                                                                  \
    }

static struct fio_option options[] = {
    OPTION(ssd, "Preset or TOML file of the drive; default: default"),
    OPTION(ftl, "Translation layer; default: the drive's"),
    OPTION(set, "Configuration: KEY=VALUE, further ones after spaces"),
    OPTION(precondition, "Preconditioning, such as steady; default: none"),
    OPTION(result, "File for the result of the drive, as JSON"),
    {.name = NULL},
};

struct request {
    struct io_u *io_u;
    uint64_t ticket;
};

/* The job of this process. */
static struct palimpsest_drive *drive;
static struct request *in_flight;
static struct io_u **done;
static unsigned flying, completed, returned;
static uint64_t start_ns;
static unsigned idle_readings;
static _Thread_local bool is_job;

/* Programs that fio starts are without these. */
#pragma weak fio_clock_source
#pragma weak thread_number

/* Takes the completed requests. */
static void take(void) {
    struct palimpsest_completion each;
    while (palimpsest_completed(drive, &each, 1) == 1) {
        unsigned at = 0;
        while (in_flight[at].ticket != each.ticket)
            at++;
        struct io_u *io_u = in_flight[at].io_u;
        memmove(in_flight + at, in_flight + at + 1, (--flying - at) * sizeof *in_flight);
        if (each.status != PALIMPSEST_DONE)
            io_u->error = each.status == PALIMPSEST_WORN_OUT ? EROFS : EIO;
        if (each.data != NULL)
            memcpy(io_u->xfer_buf, each.data, io_u->xfer_buflen);
        done[completed++] = io_u;
    }
}

/* Removes the requests that fio has. */
static void forget_returned(void) {
    completed -= returned;
    memmove(done, done + returned, completed * sizeof *done);
    returned = 0;
}

/* Lets `ns` of the drive's time pass. */
static void pass(uint64_t ns) {
    uint64_t until = palimpsest_now(drive) + ns, before = 0;
    for (uint64_t now = until - ns; now < until && now != before; now = palimpsest_now(drive)) {
        before = palimpsest_advance(drive, until) ? now : 0;
        take();
    }
}

static int virtual_clock(clockid_t clock, struct timespec *time) {
    if (!is_job || clock != CLOCK_MONOTONIC)
        return syscall(SYS_clock_gettime, clock, time);
    if (++idle_readings > IDLE_READINGS) {
        idle_readings -= IDLE_FURTHER;
        pass(IDLE_STEP_NS);
    }
    uint64_t ns = start_ns + palimpsest_now(drive);
    *time = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return 0;
}

/* For fio, once this object is preloaded. */
int clock_gettime(clockid_t clock, struct timespec *time) __attribute__((alias("virtual_clock")));

int nanosleep(const struct timespec *time, struct timespec *left) {
    if (!is_job)
        return syscall(SYS_nanosleep, time, left);
    forget_returned();
    pass(time->tv_sec * 1000000000ull + time->tv_nsec);
    return 0;
}

static int fail(const char *text) {
    log_err("palimpsest: %s\n", text);
    return 1;
}

/* Sets each KEY=VALUE of `text`. */
static int set_keys(struct palimpsest_builder *builder, const char *text) {
    char copy[4096], *rest = copy, *pair;
    if (strlen(text) >= sizeof copy)
        return fail("set: expected at most 4095 characters");
    strcpy(copy, text);
    while ((pair = strsep(&rest, " ")) != NULL) {
        char *value = strchr(pair, '=');
        if (*pair == '\0')
            continue;
        if (value == NULL)
            return fail("set: expected KEY=VALUE");
        *value++ = '\0';
        if (palimpsest_set(builder, pair, value))
            return fail(palimpsest_error());
    }
    return 0;
}

static int build(struct thread_data *td, const struct engine_options *with) {
    struct palimpsest_builder *builder = palimpsest_builder(with->ssd != NULL ? with->ssd : "default");
    if (builder == NULL || palimpsest_closed_loop(builder) ||
        (with->ftl != NULL && palimpsest_layer(builder, with->ftl)) ||
        (with->precondition != NULL && palimpsest_precondition(builder, with->precondition)) ||
        (td->o.verify != VERIFY_NONE && palimpsest_contents(builder, PALIMPSEST_BYTES)))
        return fail(palimpsest_error());
    if (with->set != NULL && set_keys(builder, with->set))
        return 1;
    drive = palimpsest_build(builder);
    return drive != NULL ? 0 : fail(palimpsest_error());
}

extern struct ioengine_ops ioengine;

/* Builds the drive before fio forks, since fio needs the size. */
static int engine_setup(struct thread_data *td) {
    if (td->io_ops != &ioengine || td->eo == NULL)
        return fail("built with headers of another configuration of fio");
    if (dlsym(RTLD_DEFAULT, "clock_gettime") != (void *)virtual_clock)
        return fail("the clock is real; expected LD_PRELOAD to name the engine");
    if (fio_clock_source != CS_CGETTIME)
        return fail("fio reads another clock; expected --clocksource=clock_gettime");
    if (thread_number > 1 || td->o.nr_files > 1)
        return fail("expected one job with one file");
    if (build(td, td->eo))
        return 1;
    if (!td->files_index) {
        add_file(td, td->o.filename ? td->o.filename : "drive", 0, 0);
        td->o.nr_files = 1;
        td->o.open_files++;
    }
    td->files[0]->real_file_size = palimpsest_size(drive);
    fio_file_set_size_known(td->files[0]);
    return 0;
}

static int engine_init(struct thread_data *td) {
    in_flight = calloc(td->o.iodepth, sizeof *in_flight);
    done = calloc(td->o.iodepth, sizeof *done);
    struct timespec now;
    virtual_clock(CLOCK_MONOTONIC, &now);
    start_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
    is_job = true;
    return in_flight == NULL || done == NULL;
}

static enum fio_q_status engine_queue(struct thread_data *td, struct io_u *io_u) {
    struct palimpsest_request request = {
        .kind = PALIMPSEST_FLUSH, .offset = io_u->offset, .size = io_u->xfer_buflen, .data = NULL};
    idle_readings = 0;
    forget_returned();
    if (io_u->ddir == DDIR_READ)
        request.kind = PALIMPSEST_READ;
    else if (io_u->ddir == DDIR_WRITE)
        request.kind = PALIMPSEST_WRITE;
    else if (io_u->ddir == DDIR_TRIM)
        request.kind = PALIMPSEST_TRIM;
    if (request.kind == PALIMPSEST_WRITE && td->o.verify != VERIFY_NONE)
        request.data = io_u->xfer_buf;
    in_flight[flying].io_u = io_u;
    if (palimpsest_submit(drive, &request, palimpsest_now(drive), &in_flight[flying].ticket)) {
        fail(palimpsest_error());
        io_u->error = EINVAL;
        return FIO_Q_COMPLETED;
    }
    flying++;
    return FIO_Q_QUEUED;
}

static int engine_getevents(struct thread_data *td, unsigned least, unsigned most, const struct timespec *timeout) {
    idle_readings = 0;
    forget_returned();
    take();
    while (completed < least) {
        if (palimpsest_advance(drive, PALIMPSEST_FOREVER)) {
            fail(palimpsest_error());
            return -EIO;
        }
        take();
    }
    return returned = completed < most ? completed : most;
}

static struct io_u *engine_event(struct thread_data *td, int event) {
    return done[event];
}

/* Ends the drive's life, and writes the result. */
static void engine_cleanup(struct thread_data *td) {
    const struct engine_options *with = td->eo;
    if (!is_job || drive == NULL)
        return;
    is_job = false;
    char *result = palimpsest_finish(drive);
    drive = NULL;
    FILE *file = result != NULL && with->result != NULL ? fopen(with->result, "w") : NULL;
    if (result == NULL)
        fail(palimpsest_error());
    else if (with->result != NULL && (file == NULL || fputs(result, file) < 0))
        fail("the result cannot be written");
    if (file != NULL)
        fclose(file);
    palimpsest_free_text(result);
    free(in_flight);
    free(done);
}

static int engine_open(struct thread_data *td, struct fio_file *file) {
    return 0;
}

static int engine_invalidate(struct thread_data *td, struct fio_file *file) {
    return 0;
}

struct ioengine_ops ioengine = {
    .name = "palimpsest",
    .version = FIO_IOOPS_VERSION,
    .flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_RAWIO,
    .setup = engine_setup,
    .init = engine_init,
    .queue = engine_queue,
    .getevents = engine_getevents,
    .event = engine_event,
    .cleanup = engine_cleanup,
    .open_file = engine_open,
    .invalidate = engine_invalidate,
    .options = options,
    .option_struct_size = sizeof(struct engine_options),
};
