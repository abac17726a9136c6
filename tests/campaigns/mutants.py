"""Mutants of C++ functions: small mistakes, found in a parse of the sources by tree-sitter (https://tree-sitter.github.io)."""

import collections
import difflib
import hashlib
import re
from dataclasses import dataclass

import tree_sitter
import tree_sitter_cpp

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
SWITCH = "XGRAD_MUTANT"

# Included by each file that has a mutant. The function's name is a symbol of every program that has the mutant's code.
HEADER = f"""#pragma once

#include <cstdlib>
#include <type_traits>

namespace planted {{

inline const unsigned selected = [] {{
  const char* const id = std::getenv("{SWITCH}");
  return id ? static_cast<unsigned>(std::strtoul(id, nullptr, 10)) : 0;
}}();

template <unsigned id>
[[gnu::used]] inline bool is_mutant() {{
  return selected == id;
}}

}}  // namespace planted
"""
SYMBOL = re.compile(rb"is_mutantILj(\d+)E")

EXCHANGED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
KEPT_OPERANDS = {"+": ("left", "right"), "*": ("left", "right"), "-": ("left",), "/": ("left",), "%": ("left",)}
EXCHANGED_CALLS = {"min": "max", "max": "min", "fmin": "fmax", "fmax": "fmin", "min_element": "max_element", "max_element": "min_element"}
COMMUTATIVE = {*EXCHANGED_CALLS, "swap", "hypot"}
# What the compiler evaluates, which nothing chooses at run time; assert() is no code in the build.
COMPILE_TIME = {"template_argument_list", "static_assert_declaration", "decltype", "sizeof_expression", "alignof_expression",
                "enumerator", "requires_clause", "requires_expression", "noexcept", "attribute_declaration", "array_declarator",
                "parameter_list", "bitfield_clause", "type_descriptor"}
CONSTANT = re.compile(r"\b(constexpr|consteval|constinit)\b")


@dataclass(frozen=True)
class Mutant:
    file: str
    operator: str
    begin: int  # bytes of the file
    end: int
    text: str
    replacement: str
    first_line: int
    last_line: int
    key: str  # of the function's text without white space, so that it ends with any other change, and of the place in it

    @property
    def id(self):
        return int(hashlib.sha256(f"{self.file} {self.begin} {self.key}".encode()).hexdigest()[:8], 16) | 1

    def planted(self):
        """A choice between the text and its mutant, on as many lines. A cast keeps the type, so that nothing else changes."""
        if self.operator == "statement dropped":
            return f"{{ if (!planted::is_mutant<{self.id}U>()) {{ {self.text} }} }}"
        text, wrong = (re.sub(r"\s*\n\s*", " ", part) for part in (self.text, self.replacement))
        if self.operator != "arguments exchanged":
            type_name = "bool" if self.operator == "condition negated" else f"std::remove_cvref_t<decltype({text})>"
            wrong = f"static_cast<{type_name}>({wrong})"
        right = f"static_cast<bool>({self.text})" if self.operator == "condition negated" else f"({self.text})"
        return f"(planted::is_mutant<{self.id}U>() ? {wrong} : {right})"

    def diff(self, source):
        """Of the file's bytes."""
        changed = source[:self.begin] + self.replacement.encode() + source[self.end:]
        lines = (text.decode().splitlines() for text in (source, changed))
        changes = list(difflib.unified_diff(*lines, n=2, lineterm=""))[2:]
        return "\n".join([f"{self.file}:{self.first_line}: {self.operator} (key {self.key}, {SWITCH}={self.id})", *changes])


def parsable(source):
    """The bytes with what tree-sitter's grammar does not know replaced by as many others: macros in place of a function's head,
    which keep their parameters, macros before a statement or a body, all but the first name of a using declaration, and {} as
    a default argument."""
    def blank(text):
        return re.sub(rb"[^\n]", b" ", text)

    source = re.sub(rb"\bXGRAD_[A-Z_]+\b(?=\s*[\w{])", lambda macro: blank(macro[0]), source)
    source = re.sub(rb"(?<=[ &*])(\w+)( = \{\})(?=[,)])", lambda default: default[1] + blank(default[2]), source)
    source = re.sub(rb"\busing [\w:\s]+(,[\w:,\s]+);", lambda use: use[0][:-len(use[1]) - 1] + blank(use[1]) + b";", source)
    head = re.compile(rb"(?m)^XGRAD_(?:PARALLEL_KERNEL|KERNEL|VECTORIZED)\(")
    begin = 0
    while match := head.search(source, begin):
        end, opened, groups = match.end(), [match.end() - 1], []
        while opened:
            if source[end] == ord("("):
                opened.append(end)
            elif source[end] == ord(")"):
                group = opened.pop(), end + 1
                if len(opened) == 1:
                    groups.append(group)
            end += 1
        first, last = groups[-2]  # the last one has the names of the parameters
        source = (source[:match.start()] + b"void f" + blank(source[match.start() + 6:first]) + source[first:last]
                  + blank(source[last:end]) + source[end:])
        begin = end
    return source


def text_of(node):
    return node.text.decode()


def descendants(node):
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def run_time(body):
    """The nodes of a function's body that are evaluated at run time, without those of functions inside."""
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type in COMPILE_TIME or node.type == "function_definition" or node.type.startswith("preproc_"):
            continue
        if node.type == "call_expression" and text_of(node.child_by_field_name("function")) == "assert":
            continue
        if node.type == "declaration" and any(CONSTANT.fullmatch(text_of(child)) for child in node.named_children):
            continue
        children = node.children
        if node.type == "if_statement" and any(child.type == "constexpr" for child in children):
            children = [child for name in ("consequence", "alternative") if (child := node.child_by_field_name(name))]
        elif node.type == "case_statement":
            value = node.child_by_field_name("value")
            children = [child for child in children if child != value]
        elif node.type == "lambda_expression":
            children = [node.child_by_field_name("body")]
        else:
            yield node
        stack += reversed(children)


def declared_types(function):
    """The types, as they are written, of the parameters and variables that have one; None where two have the same name."""
    types = {}
    for node in descendants(function):
        type_node = node.child_by_field_name("type") if node.type.endswith("declaration") else None
        if type_node is None or text_of(type_node) == "auto":
            continue
        for declarator in node.children_by_field_name("declarator"):
            names = [child for child in descendants(declarator) if child.type == "identifier"]
            if names:
                written = text_of(type_node) + "*" * declarator.text[:names[0].start_byte - declarator.start_byte].count(b"*")
                types[text_of(names[0])] = written if types.get(text_of(names[0]), written) == written else None
    return types


def type_of(node, types):
    """Something that is equal for two expressions of one type, or None."""
    if node.type == "identifier":
        return types.get(text_of(node))
    if node.type == "number_literal":
        return "double" if re.search(r"[.e]", text_of(node)) else "int"
    if node.type == "field_expression":
        return "." + text_of(node.child_by_field_name("field"))
    if node.type == "call_expression" and text_of(node.child_by_field_name("function")) != "std::move":
        function = node.child_by_field_name("function")
        return (text_of(function.child_by_field_name("field")) if function.type == "field_expression" else text_of(function)) + "()"
    if node.type in ("call_expression", "subscript_expression", "pointer_expression"):  # std::move(x), x[i], *x, &x
        inner = node.child_by_field_name("argument") or node.child_by_field_name("arguments").named_children[0]
        whole = type_of(inner, types)
        return whole and {"call": "", "subscript": "[]", "pointer": text_of(node)[0]}[node.type.removesuffix("_expression")] + whole
    return None


def is_text(node):
    """Whether a sum puts texts together."""
    return "string" in node.type or node.type == "char_literal" or (
        node.type == "binary_expression" and any(is_text(child) for child in node.named_children))


def changed_constant(text):
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    if match := re.fullmatch(r"(\d[\d']*)([uUlLzZ]*)", text):
        return f"{int(match[1].replace(chr(39), '')) + 1}{match[2]}"
    if re.fullmatch(r"(\d+\.\d*|\d*\.\d+|\d+)([eE][+-]?\d+)?[fFlL]?", text):
        return f"{text} + 1" if float(text.rstrip("fFlL")) == 0 else f"2 * {text}"
    return None


def changes_of_operation(node):
    """(operator, what is replaced, by what) of a node with two operands."""
    left, right = (node.child_by_field_name(side) for side in ("left", "right"))
    sign = node.child_by_field_name("operator").type
    if sign in EXCHANGED:
        operands = (f"({text_of(side)})" if sign == "||" and "||" in text_of(side) else text_of(side) for side in (left, right))
        yield "logic exchanged" if sign in ("&&", "||") else "comparison exchanged", node, f" {EXCHANGED[sign]} ".join(operands)
    if not is_text(node):
        for side in KEPT_OPERANDS.get(sign, ()):
            yield "factor dropped" if sign in "*/%" else "term dropped", node, text_of(left if side == "left" else right)
    if sign in ("<", "<=") and node.parent.type in ("for_statement", "while_statement", "condition_clause"):
        yield "bound off by one", node, f"{text_of(left)} + 1 {sign} {text_of(right)}"


def changes_of_call(node, types):
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    name = re.search(r"(\w+)(?:<[^()]*>)?$", text_of(function))
    values = [child for child in arguments.named_children if child.type != "comment"] if arguments else []
    if name and name[1] in EXCHANGED_CALLS and len(values) >= 2:
        whole = text_of(function)
        yield "min and max exchanged", node, whole[:name.start(1)] + EXCHANGED_CALLS[name[1]] + whole[name.end(1):] + text_of(arguments)
    if name and name[1] in COMMUTATIVE:
        return
    for one, other in zip(values, values[1:]):
        of_one = type_of(one, types)
        if of_one is None or of_one != type_of(other, types) or one.text == other.text:
            continue
        one_begin, one_end, other_begin, other_end = (
            place - node.start_byte for place in (one.start_byte, one.end_byte, other.start_byte, other.end_byte))
        whole = node.text
        exchanged = whole[:one_begin] + other.text + whole[one_end:other_begin] + one.text + whole[other_end:]
        yield "arguments exchanged", node, exchanged.decode()


def changes_of(node, types):
    kind = node.type
    if kind == "binary_expression":
        yield from changes_of_operation(node)
    elif kind == "call_expression":
        yield from changes_of_call(node, types)
    elif kind in ("if_statement", "while_statement", "conditional_expression"):
        condition = node.child_by_field_name("condition")
        if condition.type == "condition_clause":
            condition = condition.child_by_field_name("value")
        if condition.type != "declaration":
            yield "condition negated", condition, f"!({text_of(condition)})"
    elif kind in ("number_literal", "true", "false"):
        if changed := changed_constant(text_of(node)):
            yield "constant changed", node, changed
    elif kind == "unary_expression" and node.child_by_field_name("operator").type == "-":
        yield "sign dropped", node, text_of(node.child_by_field_name("argument"))
    elif kind == "assignment_expression":
        sign = node.child_by_field_name("operator").type
        if sign in ("+=", "-=", "*=", "/=", "|=", "&="):
            left, right = (text_of(node.child_by_field_name(side)) for side in ("left", "right"))
            yield f"= for {sign}", node, f"{left} = {right}"
    elif (kind in ("continue_statement", "break_statement") or kind == "expression_statement" and node.named_child_count
          or kind == "return_statement" and not node.named_child_count
          or kind == "throw_statement" and (node.parent.type == "if_statement" or node.parent.parent.type == "if_statement")):
        if node.parent.type != "for_statement" or node.parent.child_by_field_name("initializer") != node:
            yield "statement dropped", node, ";"


def functions_of(source):
    """The functions with a body of the file's bytes, in the parse."""
    tree = PARSER.parse(parsable(source))
    return [node for node in descendants(tree.root_node) if node.type == "function_definition"
            and (body := node.child_by_field_name("body")) and body.type == "compound_statement"]


def mutants_of(file, source):
    """All mutants of the functions of a file with these bytes."""
    found = []
    for function in functions_of(source):
        body = function.child_by_field_name("body")
        head = source[function.start_byte:body.start_byte].decode()
        if body.has_error or CONSTANT.search(head):
            continue
        hashed = hashlib.sha256(b"".join(source[function.start_byte:function.end_byte].split()))
        types, count = declared_types(function), collections.Counter()
        for node in run_time(body):
            for operator, target, replacement in changes_of(node, types):
                text = source[target.start_byte:target.end_byte].decode()
                count[operator] += 1
                is_repeated = operator != "statement dropped"  # in the choice that is planted
                if "\n#" in text or is_repeated and (re.search(r'//|R"', text) or any(
                        child.type == "lambda_expression" for child in descendants(target))):
                    continue
                key = hashed.copy()
                key.update(f"{operator} {count[operator]}".encode())
                found.append(Mutant(file, operator, target.start_byte, target.end_byte, text, replacement,
                                    target.start_point[0] + 1, target.end_point[0] + 1, key.hexdigest()[:12]))
    return found


def unread_functions(source):
    """The lines of functions that the parser does not understand, and that have no mutants therefore."""
    return [function.start_point[0] + 1 for function in functions_of(source) if function.child_by_field_name("body").has_error]


def drawn(mutants, random):
    """The mutants in random order, but for those that overlap one before them."""
    taken = collections.defaultdict(list)
    for mutant in random.sample(mutants, len(mutants)):
        if all(mutant.end <= begin or end <= mutant.begin for begin, end in taken[mutant.file]):
            taken[mutant.file].append((mutant.begin, mutant.end))
            yield mutant


def plant(mutants, source, header):
    """The file's bytes with these mutants, of which none overlap; lines keep their numbers."""
    for mutant in sorted(mutants, key=lambda mutant: -mutant.begin):
        source = source[:mutant.begin] + mutant.planted().encode() + source[mutant.end:]
    return f'#include <{header}>\n#line 1\n'.encode() + source
