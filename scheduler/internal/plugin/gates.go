//go:build !before1.36

package plugin

// countsGated says that the scheduler counts right when a gate keeps out a pod that it has refused before.
const countsGated = true
