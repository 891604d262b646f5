/* core/metrics.c and core/problem.c. */
#include "tests/support.h"

#include <math.h>

#include "core/metrics.h"

static const struct fib_cost cost = {.flops = 4e12, .traffic_bytes = 8e9};

static void rates_of_a_time(void **state)
{
    (void)state;
    const struct fib_rates rates = fib_metrics_rates(&cost, 2.0);
    assert_true(rates.tflops == 2000.0);
    assert_true(rates.tb_per_sec == 4.0);
    const struct fib_cost no_flops = {.traffic_bytes = 1e6};
    assert_true(fib_metrics_rates(&no_flops, 1.0).tflops == 0.0);
}

static void case_47_no_rate_without_a_time(void **state)
{
    (void)state;
    static const double times_ms[] = {0.0, -0.0, -1.78, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++) {
        const struct fib_rates rates = fib_metrics_rates(&cost, times_ms[i]);
        assert_true(isnan(rates.tflops));
        assert_true(isnan(rates.tb_per_sec));
    }
    assert_true(isfinite(fib_metrics_rates(&cost, 1e-9).tflops));
}

static void problem_tensors(void **state)
{
    (void)state;
    struct fib_problem problem = {0};
    struct fib_tensor *const x = fib_problem_add(
        &problem,
        &(struct fib_tensor){
            .name = "x", .role = FIB_INPUT, .dtype = FIB_BF16, .rank = 3, .shape = {2, 3, 5}});
    fib_problem_add(&problem, &(struct fib_tensor){.name = "y",
                                                   .role = FIB_OUTPUT,
                                                   .dtype = FIB_F32,
                                                   .rank = 1,
                                                   .shape = {INT64_C(1) << 33}});
    fib_problem_add(&problem, &(struct fib_tensor){.name = "eps", .role = FIB_SCALAR});
    assert_int_equal(problem.tensor_count, 3);
    assert_true(fib_tensor_elems(x) == 30 && fib_tensor_bytes(x) == 60);
    assert_true(fib_tensor_bytes(&problem.tensors[1]) == (size_t)1 << 35);
    assert_true(fib_tensor_elems(&problem.tensors[2]) == 1);
    assert_false(fib_tensor_is_written(x));
    assert_true(fib_tensor_is_written(&problem.tensors[1]));
    assert_true(fib_tensor_is_written(&(struct fib_tensor){.role = FIB_INOUT}));
    assert_int_equal(fib_problem_find(&problem, "y"), 1);
    assert_int_equal(fib_problem_find(&problem, "z"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_of_a_time),
        cmocka_unit_test(case_47_no_rate_without_a_time),
        cmocka_unit_test(problem_tensors),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
