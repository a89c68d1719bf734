package jsontext

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// read reads one value by a method of Reader, and nothing behind it.
func read[T any](text string, value func(*Reader) (T, error)) (T, error) {
	reader := NewReader([]byte(text))
	found, err := value(reader)
	if err == nil {
		err = reader.End()
	}
	return found, err
}

func TestWholeNumbers(t *testing.T) {
	tests := map[string]struct {
		number int64
		err    string
	}{
		"0": {0, ""}, "-0": {0, ""}, " 17\n": {17, ""}, "-9": {-9, ""},
		"281474976710655":         {MaxNumber - 1, ""},
		"281474976710657":         {MaxNumber, ""},
		"9223372036854775808":     {MaxNumber, ""},
		"-9223372036854775809":    {-MaxNumber, ""},
		strings.Repeat("9", 4300): {MaxNumber, ""},
		strings.Repeat("9", 4301): {0, "Integer value out of range"},
		"1.0":                     {0, "Expected `int`, got `float`"},
		"1e3":                     {0, "Expected `int`, got `float`"},
		"1e400":                   {0, "Number out of range"},
		`"1"`:                     {0, "Expected `int`, got `str`"},
		"true":                    {0, "Expected `int`, got `bool`"},
		"null":                    {0, "Expected `int`, got `null`"},
		"[]":                      {0, "Expected `int`, got `array`"},
		"{}":                      {0, "Expected `int`, got `object`"},
		"01":                      {0, "JSON is malformed"},
		"1.":                      {0, "JSON is malformed"},
		"1e":                      {0, "JSON is malformed"},
		"-":                       {0, "JSON is malformed"},
		"+1":                      {0, "JSON is malformed"},
		"tru":                     {0, "JSON is malformed"},
		"1 2":                     {0, "JSON is malformed"},
		"":                        {0, "JSON is malformed"},
	}
	for text, want := range tests {
		number, err := read(text, (*Reader).Int)
		if message(err) != want.err || err == nil && number != want.number {
			t.Errorf("%.20q is read as %d, %v", text, number, err)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNullStandsForWhatIsLeftOut(t *testing.T) {
	if number, err := read("null", (*Reader).IntOrNull); number != nil || err != nil {
		t.Error(number, err)
	}
	if number, err := read("4", (*Reader).IntOrNull); err != nil || *number != 4 {
		t.Error(number, err)
	}
	if text, err := read("null", (*Reader).TextOrNull); text != "" || err != nil {
		t.Error(text, err)
	}
	if _, err := read("4", (*Reader).TextOrNull); message(err) != "Expected `str | null`, got `int`" {
		t.Error(err)
	}
	if _, err := read("1.5", (*Reader).IntOrNull); message(err) != "Expected `int | null`, got `float`" {
		t.Error(err)
	}
}

func TestTexts(t *testing.T) {
	tests := map[string]string{
		`""`: "", `"a/b"`: "a/b", `"\/\"\\\b\f\n\r\t"`: "/\"\\\b\f\n\r\t", `"\u00e4\ud83d\ude00"`: "ä😀", "\"\x7fä\"": "\x7fä",
	}
	for text, want := range tests {
		if found, err := read(text, (*Reader).Text); found != want || err != nil {
			t.Errorf("%s is read as %q, %v", text, found, err)
		}
	}
	for _, text := range []string{
		`"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud800"`, `"\ud800\u0041"`, `"\ud800x"`, `"\udc00"`, "\"\x01\"",
		"\"\xff\"", "\"\xed\xa0\x80\"", "'a'",
	} {
		if found, err := read(text, (*Reader).Text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is read as %q, %v", text, found, err)
		}
	}
}

func TestTruth(t *testing.T) {
	if yes, err := read("true", (*Reader).Bool); !yes || err != nil {
		t.Error(yes, err)
	}
	if yes, err := read(" false", (*Reader).Bool); yes || err != nil {
		t.Error(yes, err)
	}
	if _, err := read("1", (*Reader).Bool); message(err) != "Expected `bool`, got `int`" {
		t.Error(err)
	}
}

func TestAShapeErrorSaysWhere(t *testing.T) {
	_, err := read(`{"a":{"x":[1,{"b":null}]}}`, func(r *Reader) (int64, error) {
		return 0, r.Object("object", func(string) error {
			return r.Map("object", func(string) error {
				return r.Array("array", func() error {
					if r.next() == '1' {
						return r.Skip()
					}
					return r.Object("object", func(string) error { _, err := r.Bool(); return err })
				})
			})
		})
	})
	if message(err) != "Expected `bool`, got `null` - at `$.a[...][1].b`" {
		t.Error(err)
	}
}

func TestDepthIsBounded(t *testing.T) {
	for depth, is := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		text := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		if _, err := read(text, skip); (err == nil) != is {
			t.Errorf("%d in each other: %v", depth, err)
		}
	}
}

func skip(r *Reader) (bool, error) { return true, r.Skip() }

func FuzzWhatIsSkippedIsJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e+3,{"b":null}],"c":"\u0041\n","d":true,"e":false}`, `[1,]`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":1 "b":2}`,
		`[1 2]`, "nul", `"\x"`, "\x00", "{1:2}", " [ ] ", "{}x", "-", "[[[", `{"a":"\`, "\ufeff1", "1\x0c",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := read(text, skip)
		isJSON := json.Valid([]byte(text))
		mayDiffer := strings.Contains(text, `\u`) || strings.Count(text, "[")+strings.Count(text, "{") > maxDepth
		if (err == nil) != isJSON && (err == nil || !mayDiffer) {
			t.Errorf("%q: %v, and JSON is %t", text, err, isJSON)
		}
	})
}

func FuzzWhatIsWrittenIsReadAgain(f *testing.F) {
	for _, text := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "ä😀\u2028<>&"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written := AppendText(nil, text)
		found, err := read(string(written), (*Reader).Text)
		isText := !strings.Contains(strings.ToValidUTF8(text, "\xff"), "\xff")
		if isText && (err != nil || found != text) {
			t.Errorf("%q is written as %s and read as %q, %v", text, written, found, err)
		}
		if isText && !json.Valid(written) {
			t.Errorf("%q is written as %s", text, written)
		}
	})
}
