package sharenode

import (
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
)

func readStatus(reader *jsontext.Reader) (status, error) {
	var found status
	if reader.Null() {
		return found, nil
	}
	err := reader.Object("object | null", func(name string) (err error) {
		switch name {
		case "memoryUnit":
			found.unit, err = reader.Text()
		case "dialect":
			found.dialect, err = reader.Text()
		case "isolation":
			found.isolation, err = reader.Text()
		case "cards":
			found.cards, err = readList(reader, readCard)
		case "conditions":
			found.conditions, err = readList(reader, readCondition)
		default:
			err = reader.Skip()
		}
		return err
	})
	return found, err
}

// readList reads a list, or null as an empty one.
func readList[T any](reader *jsontext.Reader, read func(*jsontext.Reader) (T, error)) ([]T, error) {
	if reader.Null() {
		return nil, nil
	}
	var list []T
	err := reader.Array("array | null", func() error {
		item, err := read(reader)
		list = append(list, item)
		return err
	})
	return list, err
}

func readCondition(reader *jsontext.Reader) (condition, error) {
	var found condition
	typed := false
	err := reader.Object("object", func(name string) (err error) {
		switch name {
		case "type":
			typed = true
			found.kind, err = reader.Text()
		case "status":
			found.status, err = reader.Text()
		case "message":
			found.message, err = reader.Text()
		default:
			err = reader.Skip()
		}
		return err
	})
	if err == nil && !typed {
		err = jsontext.Missing("type")
	}
	return found, err
}

func readCard(reader *jsontext.Reader) (card, error) {
	found := card{Card: Card{NUMANode: -1, LinkGroup: -1}}
	seen := map[string]bool{}
	err := reader.Object("object", func(name string) error {
		seen[name] = true
		return found.readField(reader, name)
	})
	for _, name := range [...]string{"uuid", "units"} {
		if err == nil && !seen[name] {
			err = jsontext.Missing(name)
		}
	}
	return found, err
}

func (c *card) readField(reader *jsontext.Reader, name string) (err error) {
	switch name {
	case "uuid":
		c.UUID, err = reader.Text()
	case "units":
		c.Units, err = reader.Int()
	case "index":
		c.Index, err = reader.Int()
	case "allocatedUnits":
		c.Allocated, err = reader.Int()
	case "computeScore":
		c.computeScore, err = reader.Int()
	case "numaNode":
		c.NUMANode, err = reader.Int()
	case "linkGroup":
		c.LinkGroup, err = reader.Int()
	case "cordoned":
		c.IsCordoned, err = reader.Bool()
	case "offers":
		c.offers, err = readOffers(reader)
	case "pods":
		c.Holders, err = readHolders(reader)
	default:
		err = c.readWord(reader, name)
	}
	return err
}

// readWord reads the fields whose texts stand for something.
func (c *card) readWord(reader *jsontext.Reader, name string) error {
	switch name {
	case "health", "lock", "memory":
		text, err := reader.Text()
		switch name {
		case "health":
			c.IsHealthy = text == "Healthy"
		case "lock":
			c.Lock = cards.ClassOfLock(text)
		}
		return err
	case "firstUnit":
		_, err := reader.IntOrNull()
		return err
	}
	return reader.Skip()
}

func readOffers(reader *jsontext.Reader) (offers, error) {
	var found offers
	if reader.Null() {
		return found, nil
	}
	err := reader.Map("object | null", func(name string) error {
		units, err := reader.Int()
		if class, ok := cards.ClassNamed(name); ok {
			found.known, found.units[class] = true, units
		}
		return err
	})
	return found, err
}

// share is what one container has of a card.
type share struct {
	uid   string
	units int64
}

// readHolders returns one for each pod.
func readHolders(reader *jsontext.Reader) ([]Holder, error) {
	shares, err := readList(reader, readShare)
	var holders []Holder
	places := make(map[string]int, len(shares))
	for _, share := range shares {
		place, known := places[share.uid]
		if !known {
			places[share.uid] = len(holders)
			holders = append(holders, Holder{share.uid, share.units, share.units})
			continue
		}
		holders[place].Units += share.units
		holders[place].Least = max(holders[place].Least, share.units)
	}
	return holders, err
}

func readShare(reader *jsontext.Reader) (share, error) {
	var found share
	seen := map[string]bool{}
	err := reader.Object("object", func(name string) (err error) {
		seen[name] = true
		switch name {
		case "uid":
			found.uid, err = reader.Text()
		case "units":
			found.units, err = reader.Int()
		case "namespace", "name", "container":
			_, err = reader.Text()
		case "orphaned":
			_, err = reader.Bool()
		default:
			err = reader.Skip()
		}
		return err
	})
	for _, name := range [...]string{"uid", "units"} {
		if err == nil && !seen[name] {
			err = jsontext.Missing(name)
		}
	}
	return found, err
}
