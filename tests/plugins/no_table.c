/* A shared library that is no plug-in. */
int fib_tests_no_table(void);

int fib_tests_no_table(void)
{
    return 1;
}
