// Package printable makes text that others wrote fit for people: it moves no cursor, begins no line and reads in
// one direction. It says the same as core's text/printable.py.
package printable

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const cutMark = "..."

var halfAnEscape = regexp.MustCompile(`\\(u[0-9a-f]{0,3})?$`)

// Text returns text with characters that control a terminal, or hide others, written as \u001b. Text of more than
// maxBytes is cut, and ends with three points.
func Text(text string, maxBytes int) string {
	shown := text
	if strings.ContainsFunc(text, isHidden) {
		shown = escape(text)
	}
	if len(shown) <= maxBytes {
		return shown
	}
	kept := maxBytes - len(cutMark)
	for kept > 0 && !utf8.RuneStart(shown[kept]) {
		kept--
	}
	return halfAnEscape.ReplaceAllString(shown[:kept], "") + cutMark
}

func escape(text string) string {
	var shown strings.Builder
	for _, one := range text {
		if isHidden(one) {
			fmt.Fprintf(&shown, `\u%04x`, one)
		} else {
			shown.WriteRune(one)
		}
	}
	return shown.String()
}

// isHidden says whether a character controls a terminal, the direction of writing, or ends a line.
func isHidden(one rune) bool {
	switch {
	case one < 0x20, 0x7f <= one && one <= 0x9f:
		return true
	case one == 0x61c, one == 0x200e, one == 0x200f:
		return true
	}
	return 0x2028 <= one && one <= 0x202e || 0x2066 <= one && one <= 0x2069
}
