-- Destroying a data key erases a person, for ever. The service could do that to any
-- row, without a trace; from now on only a function can, for an event
-- subject.erased that stands in the same transaction.
begin;

revoke update on subject_keys from countersign_app;

create function erase_subject(of_p smallint, of_pos bigint) returns void
    language sql security definer set search_path = public, pg_temp as $$
    update subject_keys k set subject_ref = '', kek_id = '', wrapped_key = '', destroyed_us = e.occurred_us
    from events e
    where e.p = of_p and e.pos = of_pos and e.type = 'subject.erased'
      and k.p = e.p and k.tenant = e.tenant and k.destroyed_us is null
      -- The key under which the subjects themselves are named is nobody's.
      and k.key_id = convert_from(e.payload, 'UTF8')::jsonb ->> 'keyId' and k.key_id <> 'subject_ref'
$$;

revoke execute on function erase_subject(smallint, bigint) from public;
grant execute on function erase_subject(smallint, bigint) to countersign_app;

commit;
