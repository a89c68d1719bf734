package dialects

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Nobody protects the annotations of replaced systems.
func TestReadingTakesTimeInProportion(t *testing.T) {
	const number = 150_000
	tests := map[string]struct{ key, begin, entry, end string }{
		"indexes":             {volcanoIndex, "", "%d", ""},
		"cards":               {aliyun.containers, `{"a":{`, `"%d":1`, "}}"},
		"cards of containers": {aliyun.containers, "{", `"%[1]d":{"%[1]d":1}`, "}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entries := make([]string, number)
			for place := range entries {
				entries[place] = fmt.Sprintf(test.entry, place)
			}
			text := test.begin + strings.Join(entries, ",") + test.end
			began := time.Now()
			claims, problems := Claims(map[string]string{test.key: text})
			if len(claims) != 1 || len(problems) > 0 {
				t.Fatal(claims, problems)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
