-- Workflow status records, as the status endpoint returns them. Rows after
-- expires_at are no longer shown, and deleted a day later; the events stay.
create table workflow_status (
    workflow_id text collate "C" primary key,
    record      text not null,
    expires_at  timestamptz not null
);

create index workflow_status_expiry on workflow_status (expires_at);
