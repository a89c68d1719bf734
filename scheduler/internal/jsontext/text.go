package jsontext

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// rawText reads a text from its first to its last quote, and returns what is between; its escapes are sound.
func (r *Reader) rawText() ([]byte, error) {
	r.at++
	begin := r.at
	for r.at < len(r.data) {
		switch one := r.data[r.at]; {
		case one == '"':
			r.at++
			return r.data[begin : r.at-1], nil
		case one < ' ':
			return nil, ErrMalformed
		case one == '\\':
			if err := r.skipEscape(); err != nil {
				return nil, err
			}
		default:
			r.at++
		}
	}
	return nil, ErrMalformed
}

// skipEscape refuses half a character: what is written as two has to be there as two.
func (r *Reader) skipEscape() error {
	rest := r.data[r.at:]
	if len(rest) < 2 {
		return ErrMalformed
	}
	if rest[1] != 'u' {
		if strings.IndexByte(escapes, rest[1]) < 0 {
			return ErrMalformed
		}
		r.at += 2
		return nil
	}
	_, length, ok := escaped(rest)
	if !ok {
		return ErrMalformed
	}
	r.at += length
	return nil
}

const (
	escapes  = `"\/bfnrt`
	meanings = "\"\\/\b\f\n\r\t"
)

// escaped returns the character that \uXXXX, or two of them, stand for at the beginning of data, and their length.
func escaped(data []byte) (character rune, length int, ok bool) {
	first, ok := unit16(data)
	if !ok || !utf16.IsSurrogate(first) {
		return first, 6, ok
	}
	if len(data) < 12 {
		return 0, 0, false
	}
	second, ok := unit16(data[6:])
	character = utf16.DecodeRune(first, second)
	return character, 12, ok && character != utf8.RuneError
}

func unit16(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	number, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(number), err == nil
}

// unescape returns the text that raw, whose escapes are sound, stands for.
func unescape(raw []byte) string {
	place := bytes.IndexByte(raw, '\\')
	if place < 0 {
		return string(raw)
	}
	text := make([]byte, 0, len(raw))
	for place >= 0 {
		text, raw = append(text, raw[:place]...), raw[place:]
		if raw[1] == 'u' {
			character, length, _ := escaped(raw)
			text, raw = utf8.AppendRune(text, character), raw[length:]
		} else {
			text, raw = append(text, meanings[strings.IndexByte(escapes, raw[1])]), raw[2:]
		}
		place = bytes.IndexByte(raw, '\\')
	}
	return string(append(text, raw...))
}

// AppendText appends text as a JSON text, as msgspec writes it: nothing is escaped that need not be.
func AppendText(data []byte, text string) []byte {
	const hex = "0123456789abcdef"
	data = append(data, '"')
	for place := range len(text) {
		one := text[place]
		switch short := strings.IndexByte(meanings, one); {
		case one == '/':
			data = append(data, one)
		case short >= 0:
			data = append(data, '\\', escapes[short])
		case one < ' ':
			data = append(data, '\\', 'u', '0', '0', hex[one>>4], hex[one&15])
		default:
			data = append(data, one)
		}
	}
	return append(data, '"')
}
