/* null.h: the C twin of the arm `null` (see allocators/limits/src/null.rs). */
#ifndef HEAPLAB_NULL_H
#define HEAPLAB_NULL_H

#include <stddef.h>

/* Maps and touches a ring of that many bytes; 0 if it could not. */
int null_open(size_t bytes);
void *null_malloc(size_t size);
void *null_realloc(void *p, size_t size);
void null_free(void *p);

#endif
