#pragma once

// Those of xtensor's headers that xgrad does not include; xtensor 0.26 moved every header.
#if __has_include(<xtensor/io/xio.hpp>)
#include <xtensor/core/xvectorize.hpp>
#include <xtensor/io/xio.hpp>
#include <xtensor/misc/xhistogram.hpp>
#include <xtensor/misc/xpad.hpp>
#include <xtensor/misc/xset_operation.hpp>
#include <xtensor/misc/xsort.hpp>
#include <xtensor/reducers/xnorm.hpp>
#include <xtensor/views/xindex_view.hpp>
#include <xtensor/views/xrepeat.hpp>
#include <xtensor/views/xstrided_view.hpp>
#else
#include <xtensor/xhistogram.hpp>
#include <xtensor/xindex_view.hpp>
#include <xtensor/xio.hpp>
#include <xtensor/xnorm.hpp>
#include <xtensor/xpad.hpp>
#include <xtensor/xrepeat.hpp>
#include <xtensor/xset_operation.hpp>
#include <xtensor/xsort.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xvectorize.hpp>
#endif
