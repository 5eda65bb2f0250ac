# Prints the targets of the Makefile in groups, in lines of at most 80 columns. The comment of a target is
#   target: requirements ## GROUP: sentence
BEGIN {
  groups = split("try check long build", order, " ")
  titles["try"] = "Try it"
  titles["check"] = "Check a change"
  titles["long"] = "Long tests"
  titles["build"] = "Build and set up"
}

/^[a-z-]+:.*## / {
  name = $0
  sub(/:.*/, "", name)
  text = $0
  sub(/^[^#]*## /, "", text)
  group = text
  sub(/:.*/, "", group)
  sub(/^[a-z]+: /, "", text)
  if (!(group in titles)) {
    print "The comment of " name " has no group: start it with try:, check:, long: or build:" > "/dev/stderr"
    exit 1
  }
  entries[group] = entries[group] entry(name, text)
}

# Returns the lines of a target: its name, and its sentence in a column of its own.
function entry(name, text,   words, count, i, line, lines) {
  count = split(text, words, " ")
  line = sprintf("  make %-18s", name)
  for (i = 1; i <= count; i++) {
    if (length(line) + 1 + length(words[i]) > 80) {
      lines = lines line "\n"
      line = sprintf("  %-23s", "")
    }
    line = line " " words[i]
  }
  return lines line "\n"
}

END {
  for (i = 1; i <= groups; i++) {
    printf "%s%s\n%s", (i > 1 ? "\n" : ""), titles[order[i]], entries[order[i]]
  }
}
