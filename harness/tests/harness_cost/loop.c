/* loop.c: the loops of the workloads `growth` (one block) and `walker` (mode concat), as one would write them by hand
 * in C: what the harness's own cost is measured against.
 *
 *     loop growth STEP STEPS
 *     loop concat TEXT LENGTHS     LENGTHS: one uint32_t a line, in this machine's byte order
 *
 * The requests and the bytes written are the harness's. Nothing is checked but a null from the allocator. */
#define _DEFAULT_SOURCE
#include "null.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING ((size_t)128 << 20)
#define HEADER 33

/* The measured functions are not inlined, so that their names can switch the counting on and off. */

struct block {
    char *at;
    size_t size;
};

/* On a null the block is as it was and says how far it came. */

__attribute__((noinline)) int grow(struct block *block, size_t step, size_t steps)
{
    char *at = null_malloc(step);
    size_t size = step;
    int refused = at == NULL;
    if (refused)
        return refused;
    memset(at, 0, step);
    for (size_t i = 1; i < steps; i++) {
        char *to = null_realloc(at, size + step);
        if (to == NULL) {
            refused = 1;
            break;
        }
        at = to;
        memset(at + size, (int)(i & 127), step);
        size += step;
    }
    block->at = at;
    block->size = size;
    return refused;
}

__attribute__((noinline)) int keep_lines(struct block *content, const char *text, const uint32_t *lengths, size_t lines)
{
    size_t size = HEADER + lengths[0];
    char *at = null_malloc(size);
    int refused = at == NULL;
    if (refused)
        return refused;
    memset(at, 0, HEADER);
    memcpy(at + HEADER, text, lengths[0]);
    text += lengths[0];
    for (size_t i = 1; i < lines; i++) {
        size_t length = lengths[i];
        char *to = null_realloc(at, size + length);
        if (to == NULL) {
            refused = 1;
            break;
        }
        at = to;
        memcpy(at + size, text, length);
        text += length;
        size += length;
    }
    content->at = at;
    content->size = size;
    return refused;
}

/* A file in a private mapping, every page in memory, and its size; NULL if it cannot be had. */
static const void *whole(const char *path, size_t *bytes)
{
    struct stat stat;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &stat) != 0)
        return NULL;
    *bytes = (size_t)stat.st_size;
    void *at = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

int main(int count, char **arguments)
{
    struct block block = { NULL, 0 };
    int refused = 1;
    if (count != 4 || !null_open(RING))
        return 2;
    if (strcmp(arguments[1], "growth") == 0) {
        refused = grow(&block, strtoull(arguments[2], NULL, 10), strtoull(arguments[3], NULL, 10));
    } else if (strcmp(arguments[1], "concat") == 0) {
        size_t bytes, table;
        const char *text = whole(arguments[2], &bytes);
        const uint32_t *lengths = whole(arguments[3], &table);
        if (text == NULL || lengths == NULL)
            return 2;
        refused = keep_lines(&block, text, lengths, table / sizeof *lengths);
    }
    if (refused)
        return 1;
    /* Somebody looks at the block, so that no write to it can be left out. */
    printf("%zu %d\n", block.size, block.at[HEADER]);
    return 0;
}
