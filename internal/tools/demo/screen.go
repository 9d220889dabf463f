// Copyright (c) the terraform-provider-agent authors
// SPDX-License-Identifier: MPL-2.0

package demo

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// screen is where everything is shown.
type screen struct {
	io.Writer
	color bool
}

// inTurn lets one write at a time: a CLI's output and the Ctrl-C in it come from two goroutines.
type inTurn struct {
	io.Writer
	mu sync.Mutex
}

func (w *inTurn) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Writer.Write(p)
}

// The codes that set a color or a weight on a terminal.
const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	cyan  = "\x1b[36m"
	plain = "\x1b[0m"
)

func (s screen) paint(code, text string) string {
	if !s.color {
		return text
	}
	return code + text + plain
}

func (s screen) headline(text string) {
	fmt.Fprintf(s, "\n%s\n", s.paint(bold+cyan, "== "+text))
}

// command shows a command as one would type it.
func (s screen) command(name string, args []string) {
	words := []string{name}
	for _, arg := range args {
		words = append(words, shellWord(arg))
	}
	fmt.Fprintln(s, s.paint(bold, "$ "+strings.Join(words, " ")))
}

func (s screen) verdict(ok bool) string {
	if ok {
		return s.paint(green, "ok")
	}
	return s.paint(red, "WRONG")
}

// shellWord quotes a word where a POSIX shell asks for it.
func shellWord(word string) string {
	name, value, assigns := strings.Cut(word, "=")
	switch {
	case plainWord.MatchString(word):
		return word
	case assigns && plainWord.MatchString(name):
		return name + "=" + quote(value)
	default:
		return quote(word)
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./=:-]+$`)

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
