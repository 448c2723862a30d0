/* Stands in for CPython's header of this name: the bytes of the debug hooks and the state of tracemalloc, which is
 * off. */
#ifndef HEAPLAB_OBMALLOC_PYCORE_PYMEM_H
#define HEAPLAB_OBMALLOC_PYCORE_PYMEM_H

#define PYMEM_CLEANBYTE 0xCD
#define PYMEM_DEADBYTE 0xDD
#define PYMEM_FORBIDDENBYTE 0xFD

struct _PyTraceMalloc_Config {
    int initialized;
    int tracing;
    int max_nframe;
};
#define _PyTraceMalloc_Config_INIT {0, 0, 1}

#endif
