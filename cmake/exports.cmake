# What the shared libraries export: all but the kernels, and but for these, the private parts. The names are those of
# the namespaces detail that installed headers or another component calls; tests/exports.sh checks that each is there.
set(exported_details
    AdamBase array_from AttributeList broadcast_shape broadcast_strides build_fresh CachesGuard check_count check_folder
    check_parameters check_new_tokens checkpoint common_shape CopiedFiles dispose ElementSums error_text escaped exists
    extremes_with_zero fail_changed fail_once fit_loop grad_down_to GradientExchange hessian hexadecimal hvp
    implicit_function in_backward in_quotes Int8Product InterruptGuard jacobian join Json json_error jvp
    key_of_shard last_of_each lengths_of_rows load make_folder make_value MessageReader MessageWriter middle_axis module_frame
    module_prefix ModuleScope Mt19937 nearest_of new_positions next_order Node normalize_axis notify_op number_text parse_einsum
    pool_allocate pool_release process_rounds_products read_file recorded_gradients recording refuse_leftovers
    reshaped rounding_of_thread row_major_strides single_ops stretches_to Tangents times_repeated Trace
    TreeReduction used_generator utf8 Value value_and_grad vjp watchers write_file xxh64)

# As a linker's script: g++ and clang hide a function template that is declared in a namespace with an attribute and defined
# elsewhere, so an export macro would have to stand before each declaration.
set(exports_map ${PROJECT_BINARY_DIR}/exports.map)
set(exported)
set(details 5xgrad6detail 5xgrad4onnx6detail 5xgrad10generation6detail 5xgrad10pretrained6detail 5xgrad9retrieval6detail 5xgrad10tokenizers6detail)
foreach(name IN LISTS exported_details)
  string(LENGTH ${name} length)
  foreach(namespace IN LISTS details)
    string(APPEND exported "    _ZN${namespace}${length}${name}*; _ZNK${namespace}${length}${name}*; _ZT?N${namespace}${length}${name}*;\n")
  endforeach()
endforeach()
set(hidden)
foreach(namespace IN ITEMS 5xgrad7kernels ${details})
  string(APPEND hidden "    _ZN${namespace}*; _ZNK${namespace}*; _ZT?N${namespace}*; _ZZN${namespace}*; _ZZNK${namespace}*; _ZGV*N${namespace}*;\n")
endforeach()
file(CONFIGURE OUTPUT ${exports_map} CONTENT "{\n  global:\n    *;\n${exported}  local:\n${hidden}};\n")

# Tests, benchmarks and fuzzers call private parts. What a sanitizer calls is in the program, so -z,defs is not for them.
function(xgrad_hide_private_symbols target)
  if(BUILD_SHARED_LIBS AND CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT (XGRAD_BUILD_TESTS OR XGRAD_BUILD_BENCHMARKS OR XGRAD_BUILD_FUZZERS))
    target_link_options(${target} PRIVATE LINKER:--version-script=${exports_map})
    if(NOT CMAKE_CXX_FLAGS MATCHES -fsanitize)
      target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${exports_map})
  endif()
endfunction()
