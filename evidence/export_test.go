package evidence

// WithReach makes Verify compare checkpoints less far back.
func (o Options) WithReach(n int) Options {
	o.reach = n
	return o
}
