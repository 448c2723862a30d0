/* loop.c: the loops of the workloads `growth` (one block), `walker` (mode concat) and `pairs` (one block in another's
 * place, and a batch on top), as one would write them by hand in C: what the harness's own cost is measured against.
 *
 *     loop growth STEP STEPS
 *     loop refill LIVE PAIRS
 *     loop batches BATCH PAIRS
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

struct step {
    uint32_t slot, size;
};

__attribute__((noinline)) int refill(char **slots, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char **slot = &slots[steps[i].slot];
        size_t size = steps[i].size;
        null_free(*slot);
        char *at = null_malloc(size);
        *slot = at;
        if (at == NULL)
            return 1;
        *at = (char)size;
    }
    return 0;
}

__attribute__((noinline)) int batches(char **slots, const struct step *steps, size_t batch, size_t count)
{
    for (size_t done = 0; done < count; done += batch) {
        for (size_t i = 0; i < batch; i++) {
            size_t size = steps[done + i].size;
            char *at = null_malloc(size);
            slots[i] = at;
            if (at == NULL)
                return 1;
            *at = (char)size;
        }
        for (size_t i = 0; i < batch; i++)
            null_free(slots[steps[i].slot]);
    }
    return 0;
}

/* The requests differ from the harness's and cost the null heap the same. The steps name each of the `slots` equally
 * often, and the first `slots` steps each once. */
static int pairs(int in_place, size_t slots, size_t count, struct block *last)
{
    struct step *steps = malloc(count * sizeof *steps);
    char **table = malloc(slots * sizeof *table);
    if (steps == NULL || table == NULL || slots == 0)
        return 1;
    for (size_t i = 0; i < count; i++) {
        steps[i].slot = (uint32_t)(i * 7919 % slots);
        steps[i].size = (uint32_t)(i * 31 % 512 + 1);
    }
    for (size_t i = 0; i < slots; i++)
        if ((table[i] = null_malloc(HEADER + 1)) == NULL)
            return 1;
    if (in_place ? refill(table, steps, count) : batches(table, steps, slots, count))
        return 1;
    last->size = count;
    last->at = table[0];
    return 0;
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
    if (strcmp(arguments[1], "refill") == 0 || strcmp(arguments[1], "batches") == 0)
        refused = pairs(arguments[1][0] == 'r', strtoull(arguments[2], NULL, 10), strtoull(arguments[3], NULL, 10), &block);
    if (refused)
        return 1;
    /* Somebody looks at the block, so that no write to it can be left out. */
    printf("%zu %d\n", block.size, block.at[HEADER]);
    return 0;
}
