-- Workflow status records, as the status endpoint answers them. Rows past
-- expires_at are not shown any more and swept a day later; the events stay.
create table workflow_status (
    workflow_id text collate "C" primary key,
    record      text not null,
    expires_at  timestamptz not null
);

create index workflow_status_expiry on workflow_status (expires_at);
