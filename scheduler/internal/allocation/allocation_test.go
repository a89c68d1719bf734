package allocation

import (
	"fmt"
	"strings"
	"testing"

	"gpushare.io/scheduler/internal/proportion"
)

// Anybody may write this annotation on a pod, and it is read before it is believed: reading must not take time that
// grows with the square of what is written.
func TestReadingTakesTimeInProportion(t *testing.T) {
	const begin = `{"node":"n","uid":"u","at":"","unit":"1Gi","containers":{`
	tests := map[string]struct{ begin, entry, end string }{
		"cards":             {begin + `},"cards":{`, `"%d":1`, "}}"},
		"containers":        {begin, `"%d":{}`, "}}"},
		"containers' cards": {begin, `"%[1]d":{"%[1]d":1}`, "}}"},
		"other units":       {begin + `},"other_units":{`, `"%d":"1Gi"`, "}}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := proportion.Check(150_000, func(number int) func() {
				entries := make([]string, number)
				for place := range entries {
					entries[place] = fmt.Sprintf(test.entry, place)
				}
				text := test.begin + strings.Join(entries, ",") + test.end
				return func() {
					given, err := Read(text, "u")
					if err != nil {
						t.Fatal(err)
					}
					given.Held()
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
