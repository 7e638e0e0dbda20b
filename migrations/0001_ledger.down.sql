-- The Go function Down refuses to run this while there are events, so that no ledger is
-- dropped by mistake. Read models are dropped, too: without their checkpoints their events
-- would be applied twice.
begin;

drop schema readmodels cascade;
drop function erase_subject(smallint, bigint);
drop table webhook_deliveries, download_links, signin_links, sessions, projection_dead, projection_checkpoint,
    subject_keys, checkpoints, tree_head, tiles, archives, directory, events, ledger_head;
drop function events_move_payload(), events_refuse_change();
revoke all on schema_migrations from countersign_app;

commit;
