# Doxygen reads each header through this: all that a header declares is one group, named after the header (ops_norm_softmax),
# and what is indented in a comment is code.

FNR == 1 {
  group = FILENAME
  sub("^" ENVIRON["PWD"] "/", "", group)
  sub(/\.hpp$/, "", group)
  gsub("/", "_", group)
}

/^\/\/\/   / { sub(/   /, "        ") }

# Breathe ends a docstring at a quotation mark whose pair stands in another line.
/^ *\/\/\// && gsub(/"/, "\"") % 2 { gsub(/"/, "\\&quot;") }

# A forward declaration would take the class into this header's group.
/^template <class [A-Za-z]+>$/ { waiting = $0; next }
waiting != "" && /^(class|struct) [A-Za-z]+;$/ { waiting = ""; print "\n"; next }
waiting != "" { print waiting; waiting = "" }
/^(class|struct) [A-Za-z]+;$/ { print ""; next }

/^namespace xgrad(::mpi)? \{/ { print $0 " /** @addtogroup " group "\n * @{ */"; next }
/^\}  \/\/ namespace xgrad(::mpi)?$/ { print "/** @} */ }"; next }
{ print }
