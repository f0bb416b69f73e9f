/** Families of the kubelet's /metrics that this node does not serve, and why: docs/differences-metrics.md. Pure data. */

export interface LeftOutFamilies {
  readonly why: string;
  readonly families: readonly string[];
}

const leftOut = (why: string, ...families: string[]): LeftOutFamilies => ({ why, families });
const named = (prefix: string, ...names: string[]): string[] => names.map((name) => `${prefix}${name}`);

/** One row for each reason, in the order of the page. */
export const LEFT_OUT_METRICS: readonly LeftOutFamilies[] = [
  leftOut(
    'Only with the gate `PodsAPI`: a watch of the pods API drops nothing, so it is 0 there.',
    'kubelet_pod_watch_events_dropped_total',
  ),
  leftOut(
    'Not counted yet. Log lines tell of a credential program that fails.',
    ...named('rest_client_exec_plugin_', 'call_total', 'certificate_rotation_age', 'ttl_seconds'),
    'kubelet_credential_provider_config_info',
  ),
  leftOut('An event of the runtime is read without its time.', 'kubelet_evented_pleg_connection_latency_seconds'),
  leftOut(
    'The PLEG lists all pods at once. A worker looks at its own pod with calls that `kubelet_runtime_operations_duration_seconds` counts.',
    'kubelet_pleg_pod_relist_duration_seconds',
  ),
  leftOut('The eviction manager reads its figures at each look, so they have no age.', 'kubelet_eviction_stats_age_seconds'),
  leftOut(
    'Records of pulls have no cache in memory: they are read from disk.',
    ...named('kubelet_imagemanager_inmemory_', 'pulledrecords_usage_percent', 'pullintents_usage_percent'),
  ),
  leftOut(
    'A volume that the node does not know stays on disk. Nothing is cleaned by force.',
    ...named('force_cleaned_failed_volume_', 'operation_errors_total', 'operations_total'),
  ),
  leftOut(
    'The label of a volume is put together here. That cannot fail.',
    ...named('volume_manager_selinux_container_', 'errors_total', 'warnings_total'),
  ),
  leftOut('Informers of the Go client.', ...named('informer_', 'processing_latency_seconds', 'queued_items', 'store_resource_version')),
  leftOut(
    'Only with the gate `PodLevelResourceManagers`, which is not there.',
    ...named('resource_manager_', 'allocation_errors_total', 'allocations_total', 'container_assignments'),
  ),
  leftOut('Windows only.', ...named('kubelet_started_host_process_containers_', 'errors_total', 'total')),
  leftOut(
    'Work queues of the Go client. Mailboxes of actors have `actorlet_mailbox_*`.',
    ...named(
      'workqueue_',
      'adds_total',
      'depth',
      'longest_running_processor_seconds',
      'queue_duration_seconds',
      'retries_total',
      'unfinished_work_seconds',
      'work_duration_seconds',
    ),
  ),
  leftOut(
    'Connection cache of the Go client.',
    ...named(
      'rest_client_transport_',
      'ca_reload_total',
      'cache_entries',
      'cache_gc_calls_total',
      'cert_rotation_gc_calls_total',
      'create_calls_total',
    ),
  ),
  leftOut(
    'Metrics library of the Go components. No family is hidden or disabled here.',
    'cardinality_enforcement_unexpected_categorizations_total',
    'disabled_metrics_total',
    'hidden_metrics_total',
    'registered_metrics_total',
  ),
  leftOut(
    'API server library, which the kubelet links and this daemon does not have.',
    ...named(
      'aggregator_discovery_',
      'aggregation_count_total',
      'nopeer_requests_total',
      'peer_aggregated_cache_hits_total',
      'peer_aggregated_cache_misses_total',
    ),
    ...named(
      'apiserver_',
      'audit_event_total',
      'audit_requests_rejected_total',
      'client_certificate_expiration_seconds',
      'delegated_authz_request_duration_seconds',
      'delegated_authz_request_total',
      'envelope_encryption_dek_cache_fill_percent',
      'storage_data_key_generation_duration_seconds',
      'storage_data_key_generation_failures_total',
      'storage_envelope_transformation_cache_misses_total',
      'validation_declarative_validation_mismatch_total',
      'validation_declarative_validation_panic_total',
      'validation_duplicate_validation_error_total',
      'webhooks_x509_insecure_sha1_total',
      'webhooks_x509_missing_san_total',
    ),
  ),
];
