package dialects

import (
	"fmt"
	"strconv"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
)

// Claim is what a replaced system wrote on a pod: its cards. Nothing protected these annotations: any author may
// have written them.
type Claim struct {
	cards []claimed
	// places are where the cards are among them, by index: whoever wrote the annotation chose how many there are.
	places map[int64]int
}

// claimed are units of the card with an index; units is negative where only the pod's request has the number.
type claimed struct {
	index, units int64
}

// IndexShare is what a pod has of the card with an index, in units.
type IndexShare struct {
	Index, Units int64
}

// Shares returns what the pod has of each card, total together: the pod's request.
//
// The kubelet gives a pod what it asks for, and the annotations say only on which cards. Units that they do not
// place are on their first card.
func (c Claim) Shares(total int64) []IndexShare {
	if len(c.cards) == 0 {
		return nil
	}
	left, shares := total, make([]IndexShare, len(c.cards))
	for place, card := range c.cards {
		units := card.units
		if units < 0 {
			units = total / int64(len(c.cards))
		}
		shares[place] = IndexShare{card.index, min(units, left)}
		left -= shares[place].Units
	}
	shares[0].Units += left
	var some []IndexShare
	for _, share := range shares {
		if share.Units != 0 {
			some = append(some, share)
		}
	}
	return some
}

// put sets the units of the card with an index.
func (c *Claim) put(index, units int64) { c.card(index).units = units }

// add adds to the units of the card with an index.
func (c *Claim) add(index, units int64) {
	card := c.card(index)
	card.units = min(card.units+units, jsontext.MaxNumber)
}

// card returns the card with an index, a new one without units where there is none.
func (c *Claim) card(index int64) *claimed {
	place, known := c.places[index]
	if !known {
		if c.places == nil {
			c.places = map[int64]int{}
		}
		place = len(c.cards)
		c.places[index], c.cards = place, append(c.cards, claimed{index: index})
	}
	return &c.cards[place]
}

// Claims returns what each system wrote, by its dialect's name, and why the rest cannot be read.
func Claims(annotations map[string]string) (map[string]Claim, []error) {
	var claims map[string]Claim
	var problems []error
	for _, dialect := range all {
		claim, err := dialect.words.read(annotations)
		switch {
		case err != nil:
			problems = append(problems, err)
		case claim != nil:
			if claims == nil {
				claims = map[string]Claim{}
			}
			claims[dialect.Name] = *claim
		}
	}
	return claims, problems
}

// AskedOf returns what request asks for by the names of the system that the dialect replaces, which wrote about no
// others; false where that is nothing.
func (d *Dialect) AskedOf(request cards.Request) (cards.Part, bool) {
	for _, part := range request.Parts {
		if d.replaces(part.Name) {
			return part, true
		}
	}
	return cards.Part{}, false
}

const maxDigits = 18 // of a number that 64 bits hold

// readNumber reads a decimal number from 0 up; false where text is none.
func readNumber(text string) (int64, bool) {
	if text == "" || len(text) > maxDigits {
		return 0, false
	}
	number, err := strconv.ParseUint(text, 10, 63)
	return int64(number), err == nil
}

func numberIn(annotations map[string]string, key string) (int64, error) {
	number, ok := readNumber(annotations[key])
	if !ok {
		return 0, fmt.Errorf("%s is %.200q, not a number", key, annotations[key])
	}
	return number, nil
}
