/* Stands in for CPython's header of this name. What the file wants of it is in our Python.h. */
