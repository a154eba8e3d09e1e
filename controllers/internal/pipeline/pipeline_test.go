// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }

// fixture is a Cluster and what runs steps for it.
type fixture struct {
	*WithT
	t        *testing.T
	key      client.ObjectKey
	recorder *events.FakeRecorder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), t: t, recorder: events.NewFakeRecorder(100)}
	cluster := &clustersv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "c"},
		Spec:       clustersv1.ClusterSpec{Profile: "p", Purposes: []string{"x"}, Tenancy: clustersv1.TENANCY_EXCLUSIVE},
	}
	f.Expect(env.Client.Create(t.Context(), cluster)).To(Succeed())
	f.key = client.ObjectKeyFromObject(cluster)
	return f
}

// run runs steps that return these outcomes or errors, and returns the Cluster as it is stored, the events and what
// Reconcile returns.
func (f *fixture) run(results ...any) (*clustersv1.Cluster, []string, ctrl.Result, error) {
	cluster := &clustersv1.Cluster{}
	f.Expect(env.Client.Get(f.t.Context(), f.key, cluster)).To(Succeed())
	before := cluster.DeepCopy()
	var steps []pipeline.Step[int]
	for i, result := range results {
		steps = append(steps, pipeline.Step[int]{Condition: string(rune('A' + i)), Run: func(context.Context, int) (pipeline.Outcome, error) {
			if err, failed := result.(error); failed {
				return pipeline.Outcome{}, err
			}
			outcome, _ := result.(pipeline.Outcome)
			return outcome, nil
		}})
	}
	runner := pipeline.Runner[*clustersv1.Cluster]{
		Client: env.Client, Recorder: f.recorder, MirrorPrefix: "M_",
		Status: func(c *clustersv1.Cluster) *commonapi.Status { return &c.Status.Status },
	}
	result, err := runner.Conclude(f.t.Context(), cluster, before, pipeline.Run(f.t.Context(), 0, steps))
	var said []string
	for len(f.recorder.Events) > 0 {
		said = append(said, <-f.recorder.Events)
	}
	live := &clustersv1.Cluster{}
	f.Expect(env.Client.Get(f.t.Context(), f.key, live)).To(Succeed())
	return live, said, result, err
}

func TestAllStepsDone(t *testing.T) {
	f := newFixture(t)
	live, said, _, err := f.run(pipeline.Done("a"), pipeline.Done("b"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("Ready", metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
	f.Expect(live.Status.ObservedGeneration).To(Equal(live.Generation))
	f.Expect(said).To(HaveLen(3))

	again, said, _, err := f.run(pipeline.Done("a"), pipeline.Done("b"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(said).To(BeEmpty(), "events without a transition")
	f.Expect(again.ResourceVersion).To(Equal(live.ResourceVersion), "a write without a change")
}

func TestAWaitingStepStopsTheOthers(t *testing.T) {
	f := newFixture(t)
	wait := pipeline.Wait(providerv1.ReasonSecretNotFound, "secret x", time.Minute)
	live, said, result, err := f.run(pipeline.Done("a"), wait, pipeline.Done("c"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.RequeueAfter).To(Equal(time.Minute))
	f.Expect(live).To(testenv.HaveCondition("B", metav1.ConditionFalse, providerv1.ReasonSecretNotFound))
	f.Expect(live).To(testenv.HaveCondition("C", metav1.ConditionUnknown, providerv1.ReasonPending))
	f.Expect(live).To(testenv.HaveCondition("Ready", metav1.ConditionFalse, providerv1.ReasonSecretNotFound))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseProgressing))
	f.Expect(said).To(ContainElement(HavePrefix("Warning SecretNotFound")))
}

func TestAReportLetsTheOthersGoOn(t *testing.T) {
	f := newFixture(t)
	live, _, _, err := f.run(pipeline.Report(providerv1.ReasonProgressing, "x"), pipeline.Done("b"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("B", metav1.ConditionTrue, providerv1.ReasonSucceeded))
	f.Expect(live).To(testenv.HaveCondition("Ready", metav1.ConditionFalse, providerv1.ReasonProgressing))
}

func TestAdviceDoesNotKeepFromBeingReady(t *testing.T) {
	f := newFixture(t)
	live, _, _, err := f.run(pipeline.Advise(providerv1.ReasonProvidersNotReady, "x"), pipeline.Done("b"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("A", metav1.ConditionFalse, providerv1.ReasonProvidersNotReady))
	f.Expect(live).To(testenv.HaveCondition("Ready", metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
}

func TestErrors(t *testing.T) {
	f := newFixture(t)
	live, _, _, err := f.run(pipeline.Fail(providerv1.ReasonPlatformClusterError, errors.New("no")), pipeline.Done("b"))
	f.Expect(err).To(MatchError("no"))
	f.Expect(errors.Is(err, reconcile.TerminalError(nil))).To(BeFalse())
	f.Expect(live).To(testenv.HaveCondition("A", metav1.ConditionFalse, providerv1.ReasonPlatformClusterError))

	live, _, _, err = f.run(pipeline.Invalid(providerv1.ReasonInvalidSpec, errors.New("bad")))
	f.Expect(errors.Is(err, reconcile.TerminalError(nil))).To(BeTrue(), "no retry can help")
	f.Expect(live).To(testenv.HaveCondition("A", metav1.ConditionFalse, providerv1.ReasonInvalidSpec))

	live, _, _, err = f.run(errors.New("unexpected"))
	f.Expect(err).To(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("A", metav1.ConditionFalse, providerv1.ReasonInternalError))
	f.Expect(pipeline.Fail("x", nil)).To(Succeed())
	f.Expect(pipeline.Invalid("x", nil)).To(Succeed())
}

func TestMirroredConditions(t *testing.T) {
	f := newFixture(t)
	mirrored := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: "M_" + kind, Status: status, Reason: "Theirs", Message: "theirs"}
	}
	live, _, _, err := f.run(pipeline.Done("a").Mirror(mirrored("One", metav1.ConditionTrue), mirrored("Two", metav1.ConditionFalse)))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition("M_Two", metav1.ConditionFalse, "Theirs"))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseProgressing))
	live, _, _, err = f.run(pipeline.Done("a").Mirror(mirrored("One", metav1.ConditionTrue)))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).NotTo(testenv.HaveCondition("M_Two", metav1.ConditionFalse, "Theirs"))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
}

func TestLongMessagesAreCut(t *testing.T) {
	f := newFixture(t)
	live, _, _, err := f.run(pipeline.Report("X", strings.Repeat("é", 5000)))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect([]rune(live.Status.Conditions[0].Message)).To(HaveLen(1000))
}

func TestDeletionKeepsOnlyItsOwnConditions(t *testing.T) {
	f := newFixture(t)
	live, _, _, err := f.run(pipeline.Done("a"), pipeline.Done("b").Mirror(metav1.Condition{Type: "M_x", Status: "True", Reason: "X"}))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live.Status.Conditions).To(HaveLen(4))
	live.Finalizers = []string{"example.org/hold"}
	f.Expect(env.Client.Update(t.Context(), live)).To(Succeed())
	f.Expect(env.Client.Delete(t.Context(), live)).To(Succeed())
	live, _, _, err = f.run(pipeline.Wait(providerv1.ReasonDeleting, "x", 0))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live.Status.Conditions).To(HaveLen(2))
	f.Expect(live).To(testenv.HaveCondition("A", metav1.ConditionFalse, providerv1.ReasonDeleting))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseTerminating))
}
