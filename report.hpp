#pragma once

// Everything of xgrad::report, a library of its own: link to it after find_package(xgrad COMPONENTS report).

#include "report/report.hpp"
