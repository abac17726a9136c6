#pragma once

// xtensor-blas's interface to BLAS. Its configuration comes first: since version 0.21 xblas.hpp includes it
// behind the functions, which are plain loops without it.
#include <xtensor-blas/xblas_config.hpp>

#include <xtensor-blas/xblas.hpp>
