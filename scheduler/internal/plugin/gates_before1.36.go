//go:build before1.36

package plugin

// countsGated is false: each pod that our Gate kept out and let pass again would leave scheduler_pending_pods one too low
// for gated pods, and one too high for unschedulable ones. So the Gate keeps nobody out.
const countsGated = false
