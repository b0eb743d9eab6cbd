"""SQL by which queries and views ask what verifications found; ``p`` is the table of profiles."""

IS_OF_PROFILE = """v.campaign_id = p.campaign_id AND v.configuration_id = p.configuration_id
    AND v.profile = p.name AND v.ended_at > p.created"""
#: The verifications of a profile since it was made, under the conditions of its campaign.
VERIFIED = f"FROM verifications v WHERE {IS_OF_PROFILE}"
#: The last of these that came to a finding.
LAST = f"(SELECT v.{{}} {VERIFIED} AND v.finding <> 'undecided' ORDER BY v.id DESC LIMIT 1)"
IS_WITHDRAWN = f"COALESCE({LAST.format('finding')}, '') IN ('gone', 'worse')"
VERDICT = f"CASE WHEN {IS_WITHDRAWN} THEN 'withdrawn' ELSE p.verdict END"
