# Draws the attention in the transcript of train_toy_encoder:
#   awk -f docs/attention.awk docs/transcripts/training/train_toy_encoder.txt >docs/attention.svg

function text(x, y, anchor, words) {
  drawing = drawing sprintf("<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words)
}

function cell(x, y, weight) {
  drawing = drawing sprintf("<rect x=\"%d\" y=\"%d\" width=\"78\" height=\"24\" fill=\"#2563eb\" fill-opacity=\"%s\"/>\n", \
                            x, y, weight)
  drawing = drawing sprintf("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n", x + 39, y + 16, \
                            weight > 0.5 ? "#fff" : "#374151", weight)
}

BEGIN { y = 10; left = 104; step = 80 }

/^(before|after) training, from the hidden word/ {
  y += 24
  text(10, y, "start", /^before/ ? "before training" : "after training")
  getline
  for (i = 1; i <= NF; ++i) text(left + step * (i - 1) + 39, y, "middle", $i == "[MASK]" ? "[hidden]" : $i)
  y += 8
  next
}

/^  layer [0-9]+ head [0-9]+ [0-9]/ {
  sub(/^  layer [0-9]+ /, "")
  gsub(/[^a-z0-9. ]/, "")
  text(10, y + 16, "start", $1 " " $2)
  for (i = 3; i <= NF; ++i) cell(left + step * (i - 3), y, $i)
  y += 26
}

END {
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 754 %d\" width=\"754\" height=\"%d\" " \
         "font-family=\"sans-serif\" font-size=\"12\" fill=\"#111827\">\n", y + 10, y + 10
  printf "<rect width=\"754\" height=\"%d\" rx=\"6\" fill=\"#fff\"/>\n%s</svg>\n", y + 10, drawing
}
