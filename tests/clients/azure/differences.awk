# Prints the tests whose outcome differs between Azurite and Trestle: first the results with
# Azurite, then those with Trestle, each line a name, a tab, and the outcome.
#
# The blocking and the asyncio form of a test, and the cases of one, are a line where they ended
# alike: what the brackets of pytest hold is left out, and the number of tests is printed.
FILENAME == ARGV[1] { theirs[$1] = $2; next }
{ ours[$1] = $2 }
END {
  for (test in ours) {
    they = test in theirs ? theirs[test] : "missing"
    if (they == ours[test]) { same++; continue }
    different++
    name = test
    sub(/\[.*/, "", name)
    lines[sprintf("%-8s %-8s %s", they, ours[test], name)]++
  }
  printf "%-8s %-8s %s\n", "Azurite", "Trestle", "test"
  for (line in lines) {
    print line (lines[line] > 1 ? " (" lines[line] " cases)" : "") | "sort -k 3"
  }
  close("sort -k 3")
  printf "%d tests ended alike, %d in another way\n", same, different
}
