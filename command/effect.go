package command

// An Effect is a change that a store makes in the transaction of an outcome. Each store has its own kinds of effects.
//
// The interface is sealed: a type becomes an Effect by embedding EffectOf, which also fixes the type of its result.
type Effect interface {
	effect()
}

// An EffectWith is an Effect that returns an R.
type EffectWith[R any] interface {
	Effect
	returns(R)
}

// EffectOf makes the struct type that embeds it an effect that returns an R.
type EffectOf[R any] struct{}

func (EffectOf[R]) effect()   {}
func (EffectOf[R]) returns(R) {}

// Returns packs the result of the effect. The store that applied the effect calls it.
func (EffectOf[R]) Returns(result R) Returned { return Returned{result} }

// Nothing is the result of an effect that has none.
type Nothing = struct{}

// Returned is the result of one effect. The Handle of the effect reads it.
type Returned struct{ result any }

// Results holds the results of an outcome's effects, in the order of the effects. It is nil if they are not known.
type Results []Returned

// A Handle reads the result of one effect of an outcome.
type Handle[R any] struct{ index int }

// Add appends an effect to an outcome. The returned handle reads the effect's result in Outcome.After and Outcome.Done.
func Add[R any](o *Outcome, e EffectWith[R]) Handle[R] {
	o.Effects = append(o.Effects, e)
	return Handle[R]{len(o.Effects) - 1}
}

// In returns the result of the effect, or the zero value if the results are not known.
func (h Handle[R]) In(results Results) (result R) {
	if h.index < len(results) {
		result, _ = results[h.index].result.(R)
	}
	return result
}
