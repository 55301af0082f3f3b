// One of the shared libraries that some programs of the matrix need; NAME makes them differ.
int NAME(void);
int NAME(void)
{
    return __COUNTER__;
}
