//! Milliseconds since 1970 as dates that other tools write.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970 as `2026-05-06T07:08:09.123Z`; none beyond the year 9999.
pub fn told(at: u64) -> Option<String> {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000).ok()?;
    moment.format(&Rfc3339).ok()
}

/// The moment such a date names, on any offset.
pub fn read(date: &str) -> Option<u64> {
    let moment = OffsetDateTime::parse(date.trim(), &Rfc3339).ok()?;
    u64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back_to_the_millisecond() {
        for at in [0, 1, 999, 1_715_000_889_123, 253_402_300_799_999] {
            assert_eq!(read(&told(at).unwrap()), Some(at));
        }
        assert_eq!(told(u64::MAX), None);
        assert_eq!(read("2024-03-05T10:35:38.123456Z"), Some(1_709_634_938_123));
        assert_eq!(read("2024-03-05T11:35:38.123+01:00"), Some(1_709_634_938_123));
        assert_eq!(read("yesterday"), None);
    }
}
