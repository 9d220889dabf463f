# Publishes the release: replace this by your own command, such as gh release create "$RELEASE".
echo "$RELEASE is out"
