//! Columns of a time line.

/// Width of the plot.
pub const WIDTH: f64 = 880.0;

/// How fine a time line is drawn: the greatest number of columns that the marks of a row have.
#[derive(Clone, Copy)]
pub struct Columns(u32);

impl Columns {
    /// Columns as fine as the drawing.
    pub const FINEST: Self = Self(WIDTH as u32);
    /// Fewest columns: a coarser time line hardly shows anything.
    const COARSEST: u32 = 50;

    /// Returns columns half as fine, if those still show something.
    pub fn coarser(self) -> Option<Self> {
        (self.0 / 2 >= Self::COARSEST).then_some(Self(self.0 / 2))
    }

    /// Columns of a series, whose steps are at least two pixels wide.
    pub const fn of_series(self) -> usize {
        self.0 as usize / 2
    }

    /// Left edge of the column in which that place is.
    pub fn left(self, x: f64) -> u32 {
        ((x / self.width()).floor() * self.width()) as u32
    }

    /// Right edge of the column that ends at or after that place.
    pub fn right(self, x: f64) -> u32 {
        ((x / self.width()).ceil() * self.width()).ceil() as u32
    }

    fn width(self) -> f64 {
        WIDTH / f64::from(self.0)
    }
}
