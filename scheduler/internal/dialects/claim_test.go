package dialects

import (
	"fmt"
	"strings"
	"testing"

	"gpushare.io/scheduler/internal/proportion"
)

// Nobody protects the annotations of replaced systems.
func TestReadingTakesTimeInProportion(t *testing.T) {
	tests := map[string]struct{ key, begin, entry, end string }{
		"indexes":             {volcanoIndex, "", "%d", ""},
		"cards":               {aliyun.containers, `{"a":{`, `"%d":1`, "}}"},
		"cards of containers": {aliyun.containers, "{", `"%[1]d":{"%[1]d":1}`, "}"},
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
					claims, problems := Claims(map[string]string{test.key: text})
					if len(claims) != 1 || len(problems) > 0 {
						t.Fatal(claims, problems)
					}
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
