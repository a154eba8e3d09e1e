// SPDX-License-Identifier: Apache-2.0

// Package apply writes objects to the platform cluster: by server-side apply, and only when something differs; and
// deletes those of our own objects that are no longer wanted, by label. Nothing else in the provider creates, updates
// or deletes objects on the platform cluster.
package apply
