// Package jsontext reads JSON that others wrote exactly as core reads it by msgspec: the last of equal keys
// counts, keys are told apart by case, a number with a point is no whole number, and anything else than JSON is
// refused. encoding/json is more lenient in each of these.
package jsontext

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxNumber is the greatest whole number that Int returns, and its negative the least: no card has as many
// units, and sums of tens of thousands of them stay within 64 bits.
const MaxNumber = 1 << 48

const (
	maxDepth  = 900  // of objects and arrays in each other
	maxDigits = 4300 // of a whole number: Python reads no longer ones
)

// ErrMalformed is returned for what is no JSON.
var ErrMalformed = errors.New("JSON is malformed")

// ShapeError is returned for JSON of another shape.
type ShapeError struct {
	// Problem says what is wrong, in msgspec's words.
	Problem string
	// path says where, in the order from the value outwards.
	path []string
}

// Error returns what is wrong, and where.
func (e *ShapeError) Error() string {
	if len(e.path) == 0 {
		return e.Problem
	}
	var text strings.Builder
	text.WriteString(e.Problem + " - at `$")
	for place := len(e.path) - 1; place >= 0; place-- {
		text.WriteString(e.path[place])
	}
	return text.String() + "`"
}

// within adds to err that it happened at step, if it says where.
func within(step string, err error) error {
	if shape, ok := errors.AsType[*ShapeError](err); ok {
		shape.path = append(shape.path, step)
	}
	return err
}

// Missing returns the error for an object without a field that it must have.
func Missing(field string) error {
	return &ShapeError{Problem: "Object missing required field `" + field + "`"}
}

// Reader reads one JSON text from its beginning to its end.
type Reader struct {
	data  []byte
	at    int
	depth int
}

// NewReader returns a Reader of data, which it does not change.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// End refuses anything but blanks after the value that was read.
func (r *Reader) End() error {
	if r.next() != 0 || r.at < len(r.data) {
		return ErrMalformed
	}
	return nil
}

// next skips blanks, and returns the byte there; 0 at the end.
func (r *Reader) next() byte {
	for r.at < len(r.data) {
		switch one := r.data[r.at]; one {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return one
		}
	}
	return 0
}

// Null says whether the next value is null, and skips it then.
func (r *Reader) Null() bool {
	return r.next() == 'n' && r.word("null") == nil
}

func (r *Reader) word(word string) error {
	if !bytes.HasPrefix(r.data[r.at:], []byte(word)) {
		return ErrMalformed
	}
	r.at += len(word)
	return nil
}

// Object reads an object with known fields: field reads or skips the value of each.
func (r *Reader) Object(expected string, field func(name string) error) error {
	return r.object(expected, func(name string) error { return within("."+name, field(name)) })
}

// Map reads an object whose keys are anybody's: value reads the value of each.
func (r *Reader) Map(expected string, value func(key string) error) error {
	return r.object(expected, func(key string) error {
		if !utf8.ValidString(key) {
			return ErrMalformed
		}
		return within("[...]", value(key))
	})
}

// Entry is a key of an object, and its value.
type Entry[T any] struct {
	Key   string
	Value T
}

// Entries reads an object whose keys are anybody's: value reads the value of each. Of equal keys the first decides
// the place, and the last the value.
func Entries[T any](reader *Reader, value func(*Reader) (T, error)) ([]Entry[T], error) {
	entries, places := []Entry[T]{}, map[string]int{}
	err := reader.Map("object", func(key string) error {
		found, err := value(reader)
		if place, known := places[key]; known {
			entries[place].Value = found
			return err
		}
		places[key] = len(entries)
		entries = append(entries, Entry[T]{key, found})
		return err
	})
	return entries, err
}

func (r *Reader) object(expected string, value func(key string) error) error {
	if r.next() != '{' {
		return r.mismatch(expected)
	}
	return r.items('}', func(int) error {
		key, err := r.key()
		if err != nil {
			return err
		}
		return value(key)
	})
}

// key reads a key and the colon behind it.
func (r *Reader) key() (string, error) {
	if r.next() != '"' {
		return "", ErrMalformed
	}
	raw, err := r.rawText()
	if err != nil {
		return "", err
	}
	if r.next() != ':' {
		return "", ErrMalformed
	}
	r.at++
	return unescape(raw), nil
}

// Array reads an array: item reads each of its values.
func (r *Reader) Array(expected string, item func() error) error {
	if r.next() != '[' {
		return r.mismatch(expected)
	}
	return r.items(']', func(place int) error {
		if err := item(); err != nil {
			return within("["+strconv.Itoa(place)+"]", err)
		}
		return nil
	})
}

// items reads what stands between the bracket here and last, with commas between.
func (r *Reader) items(last byte, item func(place int) error) error {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxDepth {
		return ErrMalformed
	}
	r.at++
	if r.next() == last {
		r.at++
		return nil
	}
	for place := 0; ; place++ {
		if err := item(place); err != nil {
			return err
		}
		switch r.next() {
		case ',':
			r.at++
		case last:
			r.at++
			return nil
		default:
			return ErrMalformed
		}
	}
}

// Text reads a text. It refuses bytes that are no UTF-8.
func (r *Reader) Text() (string, error) { return r.text("str") }

// TextOrNull reads a text, or null as an empty one.
func (r *Reader) TextOrNull() (string, error) {
	if r.Null() {
		return "", nil
	}
	return r.text("str | null")
}

func (r *Reader) text(expected string) (string, error) {
	if r.next() != '"' {
		return "", r.mismatch(expected)
	}
	raw, err := r.rawText()
	if err != nil || !utf8.Valid(raw) {
		return "", errors.Join(err, ErrMalformed)
	}
	return unescape(raw), nil
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	switch r.next() {
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	}
	return false, r.mismatch("bool")
}

// Int reads a whole number; one beyond MaxNumber is read as MaxNumber, and so are negative ones.
func (r *Reader) Int() (int64, error) { return r.whole("int") }

// IntOrNull reads a whole number as Int does, or null as nil.
func (r *Reader) IntOrNull() (*int64, error) {
	if r.Null() {
		return nil, nil
	}
	number, err := r.whole("int | null")
	return &number, err
}

func (r *Reader) whole(expected string) (int64, error) {
	if !r.isNumber() {
		return 0, r.mismatch(expected)
	}
	text, isWhole, err := r.number()
	switch {
	case err != nil:
		return 0, err
	case !isWhole && isInfinite(text):
		return 0, &ShapeError{Problem: "Number out of range"}
	case !isWhole:
		return 0, &ShapeError{Problem: "Expected `" + expected + "`, got `float`"}
	case len(strings.TrimPrefix(text, "-")) > maxDigits:
		return 0, &ShapeError{Problem: "Integer value out of range"}
	}
	number, _ := strconv.ParseInt(text, 10, 64) // of a larger one the largest
	return max(-MaxNumber, min(number, MaxNumber)), nil
}

func isInfinite(text string) bool {
	number, _ := strconv.ParseFloat(text, 64)
	return math.IsInf(number, 0)
}

// Skip reads any value.
func (r *Reader) Skip() error {
	switch r.next() {
	case '{':
		return r.object("", func(string) error { return r.Skip() })
	case '[':
		return r.Array("", r.Skip)
	case '"':
		_, err := r.rawText()
		return err
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	}
	_, _, err := r.number()
	return err
}

// mismatch returns the error for a value of another shape than expected.
func (r *Reader) mismatch(expected string) error {
	got, err := r.shape()
	if err != nil {
		return err
	}
	return &ShapeError{Problem: "Expected `" + expected + "`, got `" + got + "`"}
}

// shape returns what the next value is, in msgspec's words.
func (r *Reader) shape() (string, error) {
	switch r.next() {
	case '{':
		return "object", nil
	case '[':
		return "array", nil
	case '"':
		return "str", nil
	case 't':
		return "bool", r.word("true")
	case 'f':
		return "bool", r.word("false")
	case 'n':
		return "null", r.word("null")
	}
	_, isWhole, err := r.number()
	if isWhole {
		return "int", err
	}
	return "float", err
}

func (r *Reader) isNumber() bool {
	one := r.next()
	return one == '-' || isDigit(one)
}

func isDigit(one byte) bool { return '0' <= one && one <= '9' }

// number reads a number, and says whether it is a whole one: without a point or an exponent.
func (r *Reader) number() (text string, isWhole bool, err error) {
	begin := r.at
	r.skipIf('-')
	isZero := r.skipIf('0')
	if digits := r.digits(); isZero == (digits > 0) {
		return "", false, ErrMalformed
	}
	isWhole = true
	if r.skipIf('.') {
		if isWhole = false; r.digits() == 0 {
			return "", false, ErrMalformed
		}
	}
	if r.skipIf('e') || r.skipIf('E') {
		_ = r.skipIf('+') || r.skipIf('-')
		if isWhole = false; r.digits() == 0 {
			return "", false, ErrMalformed
		}
	}
	return string(r.data[begin:r.at]), isWhole, nil
}

func (r *Reader) skipIf(one byte) bool {
	if r.at < len(r.data) && r.data[r.at] == one {
		r.at++
		return true
	}
	return false
}

func (r *Reader) digits() int {
	begin := r.at
	for r.at < len(r.data) && isDigit(r.data[r.at]) {
		r.at++
	}
	return r.at - begin
}
