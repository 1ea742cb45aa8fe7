/* Random requests at queue depth 32 on a simulated drive, for benches/drive.py: prints the requests a second of
 * processor time, of the last of three rounds. Arguments: SSD LAYER read|write REQUESTS [KEY=VALUE]...
 * Ignored: arrivals at given times, and payloads. */
#include <inttypes.h>
#include <palimpsest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH 32

static void expect(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "error: %s: %s\n", what, palimpsest_error());
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count < 5)
        return 2;
    struct palimpsest_builder *builder = palimpsest_builder(arguments[1]);
    expect(builder != NULL && !palimpsest_layer(builder, arguments[2]), "drive");
    expect(!palimpsest_contents(builder, PALIMPSEST_NONE) && !palimpsest_closed_loop(builder), "options");
    expect(!palimpsest_precondition(builder, "fill:100%,random:1x"), "precondition");
    for (int each = 5; each < count; each++) {
        char *value = strchr(arguments[each], '=');
        *value++ = '\0';
        expect(!palimpsest_set(builder, arguments[each], value), arguments[each]);
    }
    struct palimpsest_drive *drive = palimpsest_build(builder);
    expect(drive != NULL, "build");
    uint64_t unit = palimpsest_unit_size(drive), units = palimpsest_size(drive) / unit;
    uint64_t all = strtoull(arguments[4], NULL, 10), random = 88172645463325252u;
    uint32_t kind = arguments[3][0] == 'r' ? PALIMPSEST_READ : PALIMPSEST_WRITE;
    struct palimpsest_request request = {.kind = kind, .size = unit};
    struct palimpsest_completion completions[DEPTH];
    double rate = 0;
    for (int round = 0; round < 3; round++) {
        clock_t begin = clock();
        uint64_t left = all, in_flight = 0;
        while (left > 0 || in_flight > 0) {
            for (; left > 0 && in_flight < DEPTH; left--, in_flight++) {
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                request.offset = random % units * unit;
                expect(!palimpsest_submit(drive, &request, palimpsest_now(drive), NULL), "submit");
            }
            expect(!palimpsest_advance(drive, PALIMPSEST_FOREVER), "advance");
            in_flight -= palimpsest_completed(drive, completions, DEPTH);
        }
        rate = (double)all * CLOCKS_PER_SEC / (double)(clock() - begin);
    }
    printf("%.0f\n", rate);
    palimpsest_free(drive);
    return 0;
}
