# fill FILE: print a file with the ${NAME}s in it filled in from the shell's variables.
fill() {
  # A here-document fills in; what it would carry out, too, is escaped.
  eval "cat <<END_OF_FILE
$(sed 's/[`\\]/\\&/g; s/\$(/\\&/g' "$1")
END_OF_FILE"
}
