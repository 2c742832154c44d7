package native

// routes is the map of the API: for each route who may use it, what the OpenAPI document says about it, and which handler
// serves it. The types of a typed handler define the request and the response. A twoStep operation must be confirmed. A raw
// handler reads and writes HTTP itself.
func (r *router) routes(h *handlers, cfg *Config) {
	events := r.section("Events")
	raw(events, mayIngest, "POST /v1/events", postEventDoc(r, cfg.Intake.MaxPayload()), h.event.post)
	raw(events, mayIngest, "POST /v1/events/batch", postBatchDoc(r, cfg.MaxBatchBody), h.batch.post)
	typed(events, mayRead, "GET /v1/events", listEventsDoc, h.events.list)
	typed(events, mayRead, "GET /v1/events/{id}", getEventDoc, h.events.get)
	raw(events, mayRead, "GET /v1/events/{id}/body", eventBodyDoc(r), h.events.body)
	typed(events, mayManage, "POST /v1/events/{id}/replay", replayEventDoc, h.events.replay)

	types := r.section("Event types")
	typed(types, mayRead, "GET /v1/event-types", listEventTypesDoc, h.eventTypes.list)
	typed(types, mayRead, "GET /v1/event-types/{name}", getEventTypeDoc, h.eventTypes.get)
	typed(types, mayManage, "PUT /v1/event-types/{name}", putEventTypeDoc, h.eventTypes.put)
	typed(types, mayManage, "DELETE /v1/event-types/{name}", deleteEventTypeDoc, h.eventTypes.delete)

	endpoints := r.section("Endpoints")
	typed(endpoints, mayManage, "POST /v1/endpoints", createEndpointDoc, h.endpoints.create)
	typed(endpoints, mayRead, "GET /v1/endpoints", listEndpointsDoc, h.endpoints.list)
	typed(endpoints, mayRead, "GET /v1/endpoints/{id}", getEndpointDoc, h.endpoints.get)
	typed(endpoints, mayManage, "PATCH /v1/endpoints/{id}", updateEndpointDoc, h.endpoints.update)
	typed(endpoints, mayManage, "DELETE /v1/endpoints/{id}", deleteEndpointDoc, h.endpoints.delete)
	typed(endpoints, mayManage, "POST /v1/endpoints/{id}/pause", pauseEndpointDoc, h.endpointStatus.pause)
	typed(endpoints, mayManage, "POST /v1/endpoints/{id}/resume", resumeEndpointDoc, h.endpointStatus.resume)
	typed(endpoints, mayRead, "GET /v1/endpoints/{id}/stats", getEndpointStatsDoc, h.endpointStatus.stats)
	typed(endpoints, mayManage, "POST /v1/endpoints/{id}/rotate-secret", rotateSecretDoc, h.secrets.rotate)
	typed(endpoints, mayRead, "GET /v1/endpoints/{id}/secrets", listSecretsDoc, h.secrets.list)
	twoStep(endpoints, mayManage, "POST /v1/endpoints/{id}/secrets/{secret}/revoke", revokeSecretDoc, h.secrets.revoke)
	typed(endpoints, mayManage, "POST /v1/endpoints/{id}/test", testEndpointDoc, h.trials.test)
	typed(endpoints, mayManage, "POST /v1/endpoints/{id}/probe", probeEndpointDoc, h.trials.probe)

	deliveries := r.section("Deliveries")
	typed(deliveries, mayRead, "GET /v1/deliveries", listDeliveriesDoc, h.deliveries.list)
	typed(deliveries, mayRead, "GET /v1/deliveries/{id}", getDeliveryDoc, h.deliveries.get)
	typed(deliveries, mayManage, "POST /v1/deliveries/{id}/retry", retryDeliveryDoc, h.deliveries.retry)
	typed(deliveries, mayManage, "POST /v1/deliveries/{id}/cancel", cancelDeliveryDoc, h.deliveries.cancel)
	raw(deliveries, mayRead, "GET /v1/attempts/stream", streamDoc(r), h.attempts.serve)

	dead := r.section("Dead letters")
	typed(dead, mayRead, "GET /v1/dead-letters", listDeadLettersDoc, h.deadLetters.list)
	raw(dead, mayRead, "GET /v1/dead-letters/export", exportDoc(r), h.export.serve)
	typed(dead, mayRead, "GET /v1/dead-letters/{id}", getDeadLetterDoc, h.deadLetters.get)
	typed(dead, mayManage, "POST /v1/dead-letters/{id}/replay", replayDeadLetterDoc, h.deadLetters.replay)
	typed(dead, mayManage, "POST /v1/dead-letters/replay", replayDeadLettersDoc, h.deadLetters.replayMany)
	twoStep(dead, mayManage, "POST /v1/dead-letters/purge", purgeDeadLettersDoc, h.deadLetters.purge)

	notices := r.section("Notices")
	typed(notices, mayRead, "GET /v1/notices", listNoticesDoc, h.notices.list)
	typed(notices, mayManage, "POST /v1/notices/{id}/acknowledge", acknowledgeNoticeDoc, h.notices.acknowledge)

	sources := r.section("Sources")
	typed(sources, mayManage, "POST /v1/sources", createSourceDoc, h.sources.create)
	typed(sources, mayRead, "GET /v1/sources", listSourcesDoc, h.sources.list)
	typed(sources, mayRead, "GET /v1/sources/{id}", getSourceDoc, h.sources.get)
	typed(sources, mayManage, "PATCH /v1/sources/{id}", updateSourceDoc, h.sources.update)
	typed(sources, mayManage, "DELETE /v1/sources/{id}", deleteSourceDoc, h.sources.delete)
	typed(sources, mayManage, "POST /v1/sources/{id}/pause", pauseSourceDoc, h.sources.pause)
	typed(sources, mayManage, "POST /v1/sources/{id}/resume", resumeSourceDoc, h.sources.resume)
	typed(sources, mayManage, "POST /v1/sources/{id}/rotate", rotateSourceCredentialDoc, h.sources.rotate)
	typed(sources, mayManage, "POST /v1/sources/{id}/acknowledgments", acknowledgeDescriptionDoc, h.sourceRecords.acknowledge)
	typed(sources, mayRead, "GET /v1/sources/{id}/acknowledgments", listAcknowledgmentsDoc, h.sourceRecords.acknowledgments)
	typed(sources, mayRead, "GET /v1/sources/{id}/rejections", listRejectionsDoc, h.sourceRecords.rejections)

	keys := r.section("Keys")
	typed(keys, mayCreateKeys, "POST /v1/keys", createKeyDoc, h.keys.create)
	typed(keys, mayReadKeys, "GET /v1/keys", listKeysDoc, h.keys.list)
	typed(keys, mayReadKeys, "GET /v1/keys/{id}", getKeyDoc, h.keys.get)
	typed(keys, mayCreateKeys, "DELETE /v1/keys/{id}", revokeKeyDoc, h.keys.revoke)

	tenants := r.section("Tenants")
	typed(tenants, mayAdmin, "POST /v1/tenants", createTenantDoc, h.tenants.create)
	typed(tenants, mayAdmin, "GET /v1/tenants", listTenantsDoc, h.tenants.list)
	typed(tenants, mayAdmin, "GET /v1/tenants/{id}", getTenantDoc, h.tenants.get)
	typed(tenants, mayAdmin, "PATCH /v1/tenants/{id}", updateTenantDoc, h.tenants.update)
	twoStep(tenants, mayAdmin, "DELETE /v1/tenants/{id}", deleteTenantDoc, h.tenants.delete)

	nodes := r.section("Nodes")
	typed(nodes, mayAdmin, "GET /v1/nodes", listNodesDoc, h.nodes.list)
}
