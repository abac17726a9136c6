# The program tells a run that differs from PyTorch's, and a directory that is broken, from one that is right.
# Needs program, training (the unpacked directory) and work.
function(expect what out_pattern err_pattern)
  execute_process(COMMAND ${program} ${work} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 1 OR NOT out MATCHES "${out_pattern}" OR NOT err MATCHES "${err_pattern}")
    message(FATAL_ERROR "${what}: exit status ${status}, output:\n${out}${err}")
  endif()
endfunction()

function(restore)
  file(REMOVE_RECURSE ${work})
  file(COPY ${training}/ DESTINATION ${work})
endfunction()

function(expect_with what text replacement out_pattern err_pattern)
  restore()
  file(READ ${work}/expected.json content)
  string(REPLACE "${text}" "${replacement}" changed "${content}")
  if(changed STREQUAL content)
    message(FATAL_ERROR "expected.json has no ${text}")
  endif()
  file(WRITE ${work}/expected.json "${changed}")
  expect("${what}" "${out_pattern}" "${err_pattern}")
endfunction()

expect_with("another momentum" "\"momentum\": 0.9" "\"momentum\": 0.8"
            "FAILED  .*sgd/loss_float64.npy\n.* passed, [1-9][0-9]* failed\n$" "^$")

expect_with("an option that xgrad has not" "\"amsgrad\": false" "\"amsgrad\": true"
            "" "^training_parity: optimizers.adamw?: xgrad has no amsgrad = true\n$")

expect_with("another number of steps" "\"steps\": " "\"steps\": 1000000000"
            "" "^training_parity: [^\n]*_tol.npy must have shape [^\n]*\n$")

expect_with("a negative size" "\"d_model\": " "\"d_model\": -"
            "^$" "^training_parity: config.d_model must be a whole number of at least 1, got -[^\n]*\n$")

expect_with("no optimizers" "\"optimizers\": " "\"optimizers\": null, \"others\": "
            "" "^training_parity: optimizers must be an object, got null\n$")

expect_with("a momentum in words" "\"momentum\": 0.9" "\"momentum\": \"high\""
            "" "^training_parity: optimizers.sgd.momentum must be a number, got \"high\"\n$")

restore()
file(WRITE ${work}/data/labels.npy "")
expect("an empty file" "^$" "^training_parity: [^\n]*labels.npy: not an npy file of version 1.0\n$")

restore()
file(WRITE ${work}/expected.json "{")
expect("no JSON" "^$" "^training_parity: [^\n]*expected.json: parse error at line 1[^\n]*\n$")
file(REMOVE_RECURSE ${work})
