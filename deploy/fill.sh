# fill FILE: print a file with each ${NAME} replaced by the shell variable.
fill() {
  # A here-document expands variables; escape the commands that it would run.
  eval "cat <<END_OF_FILE
$(sed 's/[`\\]/\\&/g; s/\$(/\\&/g' "$1")
END_OF_FILE"
}
