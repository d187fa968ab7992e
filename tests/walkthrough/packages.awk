# Turns the package index that `apt-cache dumpavail` prints into entities, one JSON object a line.
#
#   apt-cache dumpavail | awk -f packages.awk >packages.jsonl
#
# PartitionKey is the section, RowKey the package name. A key must not have `/`, so a section such
# as `contrib/net` becomes `contrib:net`; a package without a section is in `unknown`. Of several
# versions of a package the last one in the index wins.

function text(value) {
  gsub(/\\/, "\\\\", value)
  gsub(/"/, "\\\"", value)
  gsub(/[\001-\037\177]/, " ", value)
  return "\"" value "\""
}

function key(value) {
  gsub(/[\/\\#?]/, ":", value)
  return text(value)
}

function finish(    section, id, line) {
  if (field["Package"] == "") return
  section = field["Section"] == "" ? "unknown" : field["Section"]
  line = "{\"PartitionKey\":" key(section) ",\"RowKey\":" key(field["Package"])
  if (field["Architecture"] != "") line = line ",\"architecture\":" text(field["Architecture"])
  if (field["Description"] != "") line = line ",\"description\":" text(field["Description"])
  if (field["Essential"] == "yes") line = line ",\"essential\":true"
  if (field["Installed-Size"] ~ /^[0-9]+$/) {
    # Kibibytes; an Int32 reaches to 2 TiB of them.
    line = line ",\"installed\":" field["Installed-Size"]
  }
  if (field["Priority"] != "") line = line ",\"priority\":" text(field["Priority"])
  if (field["Size"] ~ /^[0-9]+$/) {
    # Bytes; JSON numbers are not exact above 2^53, so an Int64 travels as text with its type.
    line = line ",\"size@odata.type\":\"Edm.Int64\",\"size\":\"" field["Size"] "\""
  }
  line = line ",\"version\":" text(field["Version"]) "}"

  id = field["Package"]
  if (!(id in lines)) order[++count] = id
  lines[id] = line
}

# A paragraph is a package; a line is `Name: value`, or continues the one before after a blank.
/^$/ { finish(); split("", field); next }
/^[^ \t]/ {
  colon = index($0, ":")
  value = substr($0, colon + 1)
  sub(/^[ \t]+/, "", value)
  field[substr($0, 1, colon - 1)] = value
}
END {
  finish()
  for (number = 1; number <= count; number++) print lines[order[number]]
}
