// Package unit knows what one unit of a card is: so many bytes of its memory, or so large a part of the card.
//
// It says the same as core's placement/units.py.
package unit

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/quantity"
)

const (
	separator = ", " // between the units of several classes
	wholeCard = "1 card"
)

var errNoUnit = errors.New("no unit")

// Meaning is what a unit is of, and its size. The zero value is no meaning. Two units that are written
// differently and mean the same have equal meanings.
type Meaning struct {
	Class cards.Class
	// size is, in decimal digits, the bytes of a unit of memory, else how many units make a card. A text, for
	// whoever writes a policy may write 40 digits.
	size string
}

// Unit is the unit of one class, as text and as what it means.
type Unit struct {
	Meaning
	Text string
}

var (
	whole        = Unit{Meaning{cards.Whole, "1"}, wholeCard}
	slicePattern = regexp.MustCompile(`^1/([1-9][0-9]?) card$`)
)

// parse reads the unit of one class. It refuses what is none.
func parse(text string) (Unit, error) {
	if text == wholeCard {
		return whole, nil
	}
	if match := slicePattern.FindStringSubmatch(text); match != nil {
		return Unit{Meaning{cards.Slice, match[1]}, text}, nil
	}
	size, err := quantity.ReadMemory(text)
	if err != nil {
		return Unit{}, err
	}
	if size.Sign() == 0 {
		return Unit{}, errNoUnit
	}
	return Unit{Meaning{cards.Memory, size.String()}, text}, nil
}

// MeaningOf returns what a unit means, the zero Meaning where it cannot be read.
func MeaningOf(text string) Meaning {
	parsed, _ := parse(text)
	return parsed.Meaning
}

// ParseNode reads the units of a node, one for each class that its cards serve. It refuses what is none.
func ParseNode(text string) ([]Unit, error) {
	var parts []Unit
	for part := range strings.SplitSeq(text, separator) {
		parsed, err := parse(part)
		if err != nil {
			return nil, err
		}
		parts = append(parts, parsed)
	}
	if len(parts) > 1 && !slices.Equal(classesOf(parts), cards.Classes[:]) {
		return nil, errNoUnit
	}
	return parts, nil
}

func classesOf(parts []Unit) []cards.Class {
	classes := make([]cards.Class, len(parts))
	for place, part := range parts {
		classes[place] = part.Class
	}
	return classes
}

// ModeOf returns the mode in which cards are divided into parts, which ParseNode has read.
func ModeOf(parts []Unit) cards.NodeMode {
	classes := classesOf(parts)
	for _, mode := range cards.NodeModes {
		if slices.Equal(mode.Classes, classes) {
			return mode
		}
	}
	return cards.NodeModes[0]
}

// Fields are the fields of the API from which the unit of a node follows.
type Fields struct {
	Mode, MemoryUnit string
	// SlicesPerCard is nil where it is left out.
	SlicesPerCard *int64
}

// ToCome returns as text what cards are to be divided into, where another unit is inForce (as a status writes
// it); empty elsewhere, and where one of the two is unknown.
func (f Fields) ToCome(inForce string) string {
	asked, err := f.units()
	if err != nil {
		return ""
	}
	present, err := ParseNode(inForce)
	if err != nil || slices.EqualFunc(asked, present, func(a, b Unit) bool { return a.Meaning == b.Meaning }) {
		return ""
	}
	texts := make([]string, len(asked))
	for place, part := range asked {
		texts[place] = part.Text
	}
	return strings.Join(texts, separator)
}

// units returns what cards are to be divided into. It refuses an unknown mode, and fields that name no unit.
func (f Fields) units() ([]Unit, error) {
	for _, mode := range cards.NodeModes {
		if mode.Name == f.Mode {
			return f.unitsOf(mode.Classes)
		}
	}
	return nil, errNoUnit
}

func (f Fields) unitsOf(classes []cards.Class) ([]Unit, error) {
	var parts []Unit
	for _, class := range classes {
		part, err := f.unitOf(class)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (f Fields) unitOf(class cards.Class) (Unit, error) {
	switch class {
	case cards.Whole:
		return whole, nil
	case cards.Memory:
		if parsed, err := parse(f.MemoryUnit); err != nil || parsed.Class == cards.Memory {
			return parsed, err
		}
	case cards.Slice:
		if f.SlicesPerCard != nil {
			number := fmt.Sprint(*f.SlicesPerCard)
			return Unit{Meaning{cards.Slice, number}, "1/" + number + " card"}, nil
		}
	}
	return Unit{}, errNoUnit
}

// Convert returns how many units with the meaning wanted contain units with the meaning given, at most the
// greatest that ledgers count with; false between classes: that depends on the card.
func Convert(units int64, given, wanted Meaning, greatest int64) (int64, bool) {
	if given.Class != wanted.Class {
		return 0, false
	}
	times, parts := given.bytes(), wanted.bytes()
	if given.Class != cards.Memory {
		times, parts = parts, times
	}
	number := new(big.Int).Mul(big.NewInt(units), times)
	quotient, rest := new(big.Int).QuoRem(number, parts, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if quotient.Cmp(big.NewInt(greatest)) > 0 {
		return greatest, true
	}
	return quotient.Int64(), true
}

func (m Meaning) bytes() *big.Int {
	size, _ := new(big.Int).SetString(m.size, 10)
	return size
}

// OneOf returns the meaning of a unit of a class whose size is 1: a byte, or a whole card.
func OneOf(class cards.Class) Meaning { return Meaning{class, "1"} }
