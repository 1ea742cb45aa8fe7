/* Replays a CSV trace (time_ns,op,offset_bytes,size_bytes) on a simulated drive, with an event loop of its own, and
 * prints the result as JSON. Ignored: gz, other formats, and commands of zones.
 *
 *   cc replay.c $(pkg-config --cflags --libs palimpsest) -o replay
 *   ./replay trace.csv default subpage ssd.blocks_per_plane=48
 */
#include <inttypes.h>
#include <palimpsest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what) {
    fprintf(stderr, "error: %s: %s\n", what, palimpsest_error());
    exit(1);
}

static struct palimpsest_drive *open_drive(int count, char **arguments) {
    struct palimpsest_builder *builder = palimpsest_builder(arguments[0]);
    if (builder == NULL)
        fail(arguments[0]);
    if (count > 1 && palimpsest_layer(builder, arguments[1]))
        fail(arguments[1]);
    for (int each = 2; each < count; each++) {
        char *value = strchr(arguments[each], '=');
        if (value == NULL) {
            fprintf(stderr, "error: %s: expected key=value\n", arguments[each]);
            exit(1);
        }
        *value++ = '\0';
        if (palimpsest_set(builder, arguments[each], value))
            fail(arguments[each]);
    }
    struct palimpsest_drive *drive = palimpsest_build(builder);
    if (drive == NULL)
        fail("drive");
    return drive;
}

static uint32_t kind_of(const char *name) {
    static const char *const names[] = {"read", "write", "trim", "flush"};
    for (uint32_t kind = 0; kind < 4; kind++)
        if (strcmp(name, names[kind]) == 0)
            return kind;
    fprintf(stderr, "error: operation %s: expected read, write, trim or flush\n", name);
    exit(1);
}

/* Takes the completed requests; returns their number. */
static uint64_t take(struct palimpsest_drive *drive) {
    struct palimpsest_completion completions[64];
    uint64_t taken = 0;
    size_t count;
    while ((count = palimpsest_completed(drive, completions, 64)) > 0) {
        for (size_t each = 0; each < count; each++)
            if (completions[each].status != PALIMPSEST_DONE)
                fprintf(stderr, "request %" PRIu64 ": status %" PRIu32 "\n", completions[each].ticket,
                        completions[each].status);
        taken += count;
    }
    return taken;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: %s TRACE.csv SSD [LAYER [KEY=VALUE]...]\n", arguments[0]);
        return 2;
    }
    FILE *trace = fopen(arguments[1], "r");
    if (trace == NULL) {
        perror(arguments[1]);
        return 1;
    }
    struct palimpsest_drive *drive = open_drive(count - 2, arguments + 2);
    uint64_t submitted = 0, completed = 0, arrival, event;
    char line[256], name[16];
    struct palimpsest_request request = {0};
    while (fgets(line, sizeof line, trace)) {
        if (sscanf(line, "%" SCNu64 ",%15[a-z],%" SCNu64 ",%" SCNu64, &arrival, name, &request.offset, &request.size) < 4)
            continue; /* the header */
        request.kind = kind_of(name);
        /* The events of the drive before the next arrival. */
        while (palimpsest_next_time(drive, &event) && event < arrival) {
            if (palimpsest_advance(drive, event))
                fail("advance");
            completed += take(drive);
        }
        if (palimpsest_submit(drive, &request, arrival, NULL))
            fail("submit");
        submitted++;
        completed += take(drive);
    }
    fclose(trace);
    while (palimpsest_in_flight(drive) > 0) {
        if (palimpsest_advance(drive, PALIMPSEST_FOREVER))
            fail("advance");
        completed += take(drive);
    }
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " requests completed\n", completed, submitted);
    char *result = palimpsest_finish(drive);
    if (result == NULL)
        fail("finish");
    puts(result);
    palimpsest_free_text(result);
    return completed != submitted;
}
