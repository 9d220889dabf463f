# Publishes the release: replace it by your command, which runs again after a lost state.
echo "$RELEASE is out"
