// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

// TestEventsOnTransitionsOnly plays the life of one step, and reads what is said of its condition each time.
func TestEventsOnTransitionsOnly(t *testing.T) {
	f := newFixture(t)
	wait := func(reason, message string) any { return pipeline.Wait(reason, message, 0) }
	for i, step := range []struct {
		result any
		want   string
	}{
		{wait(providerv1.ReasonProgressing, "10 %"), "Normal Progressing A is False: 10 %"},
		{wait(providerv1.ReasonProgressing, "20 %"), ""},
		{wait(providerv1.ReasonSecretNotFound, "secret x"), "Warning SecretNotFound A is False: secret x"},
		{wait(providerv1.ReasonSecretNotFound, "secret y"), ""},
		{errors.New("cut off"), "Warning InternalError A is False: cut off"},
		{pipeline.Done("done"), "Normal Succeeded A is True: done"},
		{pipeline.Done("done again"), ""},
		{wait(providerv1.ReasonSuspended, "x"), "Normal Suspended A is False: x"},
	} {
		_, said, _, _ := f.run(step.result)
		var ofStep []string
		for _, event := range said {
			if !f.aboutReady(event) {
				ofStep = append(ofStep, event)
			}
		}
		if step.want == "" {
			f.Expect(said).To(BeEmpty(), "%d: nothing changed but the message", i)
			continue
		}
		f.Expect(ofStep).To(Equal([]string{step.want}), "%d", i)
		f.Expect(said).To(HaveLen(2), "%d: Ready changes along", i)
	}
}

// aboutReady says whether an event is about the summary.
func (f *fixture) aboutReady(event string) bool {
	matches, err := ContainSubstring(" Ready is ").Match(event)
	f.Expect(err).NotTo(HaveOccurred())
	return matches
}

func TestTheFirstConditionThatIsNotTrueSpeaksForAll(t *testing.T) {
	f := newFixture(t)
	live, _, _, err := f.run(pipeline.Done("a"), pipeline.Report(providerv1.ReasonConflict, "first"),
		pipeline.Wait(providerv1.ReasonProgressing, "second", 0))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("Ready", metav1.ConditionFalse, providerv1.ReasonConflict))
	f.Expect(live.Status.Conditions).To(ContainElement(HaveField("Message", "B: first")))
	f.Expect(live.Status.Conditions).To(HaveEach(HaveField("ObservedGeneration", live.Generation)))

	// A step that is not reached keeps what was said of it before.
	live, _, _, err = f.run(pipeline.Done("a"), pipeline.Wait(providerv1.ReasonConflict, "first", 0), pipeline.Done("c"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("C", metav1.ConditionFalse, providerv1.ReasonProgressing))
}

func TestTheEarliestTimeCounts(t *testing.T) {
	f := newFixture(t)
	_, _, result, err := f.run(pipeline.Done("a").Again(time.Hour), pipeline.Done("b").Again(time.Minute), pipeline.Done("c"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.RequeueAfter).To(Equal(time.Minute))
	_, _, result, err = f.run(pipeline.Done("a").Again(time.Hour), pipeline.Fail(providerv1.ReasonInternalError, errors.New("x")))
	f.Expect(err).To(HaveOccurred())
	f.Expect(result.RequeueAfter).To(BeZero(), "an error has its own backoff")
}

func TestRunTellsHowFarItCame(t *testing.T) {
	step := func(outcome pipeline.Outcome, err error) pipeline.Step[int] {
		return pipeline.Step[int]{Condition: "A", Run: func(context.Context, int) (pipeline.Outcome, error) { return outcome, err }}
	}
	failed := errors.New("x")
	for name, c := range map[string]struct {
		step     pipeline.Step[int]
		finished bool
		err      error
	}{
		"done":   {step(pipeline.Done("x"), nil), true, nil},
		"advice": {step(pipeline.Advise("X", "x"), nil), true, nil},
		"report": {step(pipeline.Report("X", "x"), nil), false, nil},
		"wait":   {step(pipeline.Wait("X", "x", 0), nil), false, nil},
		"failed": {step(pipeline.Outcome{}, failed), false, failed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			result := pipeline.Run(t.Context(), 0, []pipeline.Step[int]{c.step})
			g.Expect(result.Finished()).To(Equal(c.finished))
			g.Expect(errors.Is(result.Err(), c.err)).To(BeTrue())
			g.Expect(result.Conditions()).To(HaveLen(1))
		})
	}
	// A provider that shuts down in the middle of a step has nothing to say of it.
	stopped := pipeline.Run(t.Context(), 0, []pipeline.Step[int]{step(pipeline.Outcome{}, fmt.Errorf("list: %w", context.Canceled))})
	NewWithT(t).Expect(stopped.Conditions()).To(BeEmpty())
	NewWithT(t).Expect(stopped.Finished()).To(BeFalse())
}

func TestErrorsKeepTheirCauseAndReason(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("cause")
	for _, err := range []error{
		pipeline.Fail("Why", cause), pipeline.Invalid("Why", cause), fmt.Errorf("more: %w", pipeline.Fail("Why", cause)),
	} {
		g.Expect(errors.Is(err, cause)).To(BeTrue())
		result := pipeline.Run(t.Context(), 0, []pipeline.Step[int]{{
			Condition: "A", Run: func(context.Context, int) (pipeline.Outcome, error) { return pipeline.Outcome{}, err },
		}})
		g.Expect(result.Conditions()).To(HaveExactElements(HaveField("Reason", "Why")))
		g.Expect(result.Conditions()).To(HaveExactElements(HaveField("Message", err.Error())))
	}
}

func TestAnObjectThatIsGoneIsNoError(t *testing.T) {
	f := newFixture(t)
	cluster := &clustersv1.Cluster{}
	f.Expect(env.Client.Get(t.Context(), f.key, cluster)).To(Succeed())
	f.Expect(env.Client.Delete(t.Context(), cluster)).To(Succeed())
	before := cluster.DeepCopy()
	recorder := events.NewFakeRecorder(10)
	result, err := pipeline.Runner[*clustersv1.Cluster]{
		Client: env.Client, Recorder: recorder, Status: func(c *clustersv1.Cluster) *commonapi.Status { return &c.Status.Status },
	}.Conclude(t.Context(), cluster, before, pipeline.Run(t.Context(), 0, []pipeline.Step[int]{{
		Condition: "A", Run: func(context.Context, int) (pipeline.Outcome, error) { return pipeline.Done("gone"), nil },
	}}))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.IsZero()).To(BeTrue())
	f.Expect(recorder.Events).To(BeEmpty(), "nobody is there to read them")
}

// TestConcludeWritesWhatElseTheStepsSet sets a field of the status that is the steps' own, and a phase of the controller's.
func TestConcludeWritesWhatElseTheStepsSet(t *testing.T) {
	f := newFixture(t)
	cluster := &clustersv1.Cluster{}
	f.Expect(env.Client.Get(t.Context(), f.key, cluster)).To(Succeed())
	before := cluster.DeepCopy()
	endpoints := clustersv1.Endpoints{{Name: "x", URL: "https://x.example.org"}}
	_, err := pipeline.Runner[*clustersv1.Cluster]{
		Client: env.Client, Recorder: f.recorder, Status: func(c *clustersv1.Cluster) *commonapi.Status { return &c.Status.Status },
		Phase: func(_ *clustersv1.Cluster, ready bool) string { return fmt.Sprintf("Ready-%v", ready) },
	}.Conclude(t.Context(), cluster, before, pipeline.Run(t.Context(), cluster, []pipeline.Step[*clustersv1.Cluster]{{
		Condition: "A", Run: func(_ context.Context, c *clustersv1.Cluster) (pipeline.Outcome, error) {
			c.Status.Endpoints = endpoints
			return pipeline.Done("x"), nil
		},
	}}))
	f.Expect(err).NotTo(HaveOccurred())
	live := &clustersv1.Cluster{}
	f.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), live)).To(Succeed())
	f.Expect(live.Status.Endpoints).To(Equal(endpoints))
	f.Expect(live.Status.Phase).To(Equal("Ready-true"))
}
