package allocation

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Anybody may write this annotation on a pod, and it is read before it is believed: reading must not take time that
// grows with the square of what is written.
func TestReadingTakesTimeInProportion(t *testing.T) {
	const number = 150_000
	const begin = `{"node":"n","uid":"u","at":"","unit":"1Gi","containers":{`
	tests := map[string]struct{ begin, entry, end string }{
		"cards":             {begin + `},"cards":{`, `"%d":1`, "}}"},
		"containers":        {begin, `"%d":{}`, "}}"},
		"containers' cards": {begin, `"%[1]d":{"%[1]d":1}`, "}}"},
		"other units":       {begin + `},"other_units":{`, `"%d":"1Gi"`, "}}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entries := make([]string, number)
			for place := range entries {
				entries[place] = fmt.Sprintf(test.entry, place)
			}
			began := time.Now()
			given, err := Read(test.begin+strings.Join(entries, ",")+test.end, "u")
			if err != nil {
				t.Fatal(err)
			}
			given.Held()
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
