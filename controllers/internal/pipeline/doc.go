// SPDX-License-Identifier: Apache-2.0

// Package pipeline runs the steps that a reconciliation consists of, and turns what they return into conditions, phase
// and events. It is the only place that writes those.
//
// A step returns an Outcome, or an error made by Fail or Invalid. It never writes a condition itself, and never touches
// the status's conditions, phase or observedGeneration; any other field of the status is its to set on the object in
// memory. Conclude then writes the status once, and only if it changed.
package pipeline
