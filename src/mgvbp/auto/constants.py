"""The numbers that `auto` decides by.

``python benchmarks/constants.py`` halves and doubles each number, fits the zoo's small targets again and prints how
many fits are within 0.05 nats of the optimum and how many certificates are false. It also prints the queries and the
search's own time, relative to the values below; docs/constants.md has the table. Most numbers were chosen by such
runs. The others were chosen by an argument, which stands beside the number.
"""

# --- what to expect -------------------------------------------------------------------------------------

USUAL = (7, 18)
"""Evaluations of a search by values, divided by (d + 1)(d + 2): half of the targets of ``benchmarks/zoo.py --max-dim
12`` end between these. A progress bar shows them; nothing is decided by them."""

# --- leaps ----------------------------------------------------------------------------------------------

FIRST_RADIUS = 0.5
"""Trust radius of the first leap, in nats per parameter (plus one nat in all): the leap may move every coordinate by
about one standard deviation."""
ACCEPTED = 0.1
"""Share of the promised gain that a leap must bring to be kept."""
DOUBT = 0.3
"""Largest share of the promised gain that a leap may fall short of `ACCEPTED` because of noise and still be kept."""
GOOD = 0.5
"""The radius grows after a leap that gained more than this share of its promise and used more than this share of the
radius."""
WIDENING = 3.0
"""Factor on the radius after a good leap."""
NARROWING = 0.25
"""Radius after a leap that failed, in units of the KL divergence of that leap."""
SMALLEST_RADIUS = 1e-4
"""Radius, in nats, below which a failed leap is blamed on noise, so that more draws are made."""
RESTORED_RADIUS = 0.1
"""Smallest radius, in nats, once more draws have been made."""
MOST_FAILURES = 4
"""Failed leaps in a row that a poor surface may cause; after one more the search looks for another region."""
MORE_DRAWS = 1.5
"""Factor on the number of effective draws after a leap that failed because of noise."""
REUSED = 0.5
"""Effective draws that suffice to judge a leap, as a share of those of the last surface."""
PREDICTED = 0.99
"""A surface that predicts more than this share of the variance may be followed beyond the radius, by values by single
points (`ONWARD`). From surfaces that predict 0.9 these climb eight schools (centred) into the narrow neck."""
SMALL_RESIDUAL = 0.3
"""A surface whose residuals have a smaller standard deviation, in nats, may be followed beyond the radius as well."""
MISS = 3.0
"""Beyond the radius, the most that a surface may be wrong by, in units of the gain that it promises."""
WIDEST = 1e9
"""A standard deviation that has grown by more than this factor is taken for infinite: the density is improper."""

# --- draws ----------------------------------------------------------------------------------------------

DRAWS_PER_COEFFICIENT = 1.3
"""Draws for a first surface, per coefficient: few, but enough that some are left to show its residuals."""
CERTIFYING = 2.0
"""Fewest effective draws for a certificate. By values this is their number per coefficient; by gradients their number
per parameter is twice this."""
ROUND_OFF = 1e-9
"""Share of the effective draws that may be missing because of round-off."""
MOST_FILLS = 6
"""Batches that may try to reach an effective sample size; after them the search goes on with the draws it has."""
MOST_DECISIONS = 50
"""Decisions that may be taken on the same draws. More would mean that the search goes round in circles, so new draws
are asked for."""
FEW = 4
"""Draws that suffice to take a leap on trust where there are no evaluations left to judge it by a surface."""
LEAST_FRESH = 32
"""Fewest draws that verify a result by values: a hole with a tenth of q's mass is missed by one in thirty."""
LOOKED_AT = 48
"""Draws that verify a result with one parameter, and divided by d a result with d of them (if that is more): stratified
on a line so dense, out to four standard deviations, a narrow pit or trench is met."""
PAIRS_ONLY_ABOVE, KEPT = 100, 20
"""Of a full family above this dimension all draws but those of the Hessian are pairs, and surfaces start with twice as
many of them: their odd part has no noise of the third degree. An archive keeps about so many draws per parameter."""
PAIRED_ABOVE = 13
"""With gradients, draws are made in pairs ±ε above this dimension. Below it polynomials of higher degree remove more
noise than pairs do; above it they take too long."""
BALANCED = 1.2
"""Pairs per parameter that are balanced together, if there are so many."""

# --- the end --------------------------------------------------------------------------------------------

CONFIDENCE = 2.0
"""A gap is taken for noise if it exceeds the mean of the noise by fewer standard deviations than this."""
GROWTH_BY_VALUES = 1.2
"""Largest factor by which the effective draws grow before the noise is estimated again, in a search by values."""
GROWTH_BY_GRADIENTS = 1.3
"""The same factor in a search by gradients."""
LEAST_GAIN_BY_VALUES = 0.05
"""Gain, in units of the tolerance, below which a leap is not worth its draws, in a search by values."""
LEAST_GAIN_BY_GRADIENTS = 0.2
"""The same gain in a search by gradients."""
FAR_FROM_GAUSSIAN = 0.3
"""A target is far from Gaussian if a quadratic misses this many nats of it (standard deviation). More draws are made
then before a result is believed, and a better Gaussian is looked for nearby."""
STILL_SEEN = 0.8
"""A verification made before polishing still counts if polishing leaves more than this share of effective draws."""
POLISH_ABOVE = 0.1
"""The optimum of the draws at hand is looked for where a quadratic misses this many nats (standard deviation)."""
TELLING = 0.1
"""Smallest gain of a polishing, as a share of what its surface promised or of the noise, that says by how much the gap
must be stretched."""
POLISHED_GAP = 0.001
"""Polishing ends at a surface that promises less than this share of the least gain of a leap: on a curved ridge the
bound may rise by a hundred times what a surface promises."""
POLISHED_NOISE = 0.05
"""The same as a share of the noise: a better optimum of the draws at hand would be an optimum of their noise."""
POLISHED_GAIN = 0.01
"""Polishing has arrived, too, if all its leaps together gain less than this share of the tolerance."""
NEAR_THE_TOP, FOLLOWED = 2.0, 0.2
"""With gradients, far from a Gaussian: fewer nats than this below the optimum the search goes to the optimum of the
draws at hand in place of a leap, and then makes this share of more draws. The draws are followed until a surface
promises less than this share of their noise."""
SHIFT, CHANGE = 0.3, 0.7
"""To see whether a result is a saddle, its mean is moved by so many standard deviations, and its precision is changed
by a factor of at most exp(0.7) either way."""
WIDE, HALF, HALVED, NARROWED = 2.5, 0.5, 4, 0.5
"""Other Gaussians that are tried: one with so many times the standard deviations, for the four directions in which a
quadratic misses most the one twice as wide there and the two that are half as wide, one standard deviation to either
side, and at the highest draw one with this share of the standard deviations and one with its square."""
DEPARTURE, MOST_DEPARTURES, DEPARTED_SHARE = 1.0, 6, 0.1
"""From there the bound is climbed by so many leaps, within a radius of so many nats each, as long as this share of the
effective draws is left."""
MOST_LOOKED = 40_000
"""Draws, summed over the surfaces, that this may be fitted to."""
SLOW, MOST_SLOW = 0.5, 64.0
"""A direction is slow if a leap takes less than this share of the way along it; the largest factor by which that
stretches the gap."""
FRESH_NOISE, FRESH_SHARE = 0.4, 0.2
"""The share of the tolerance that the noise of fresh draws along slow directions may cost, and the share of all draws
that they need not exceed."""
SLOWER = 2.0
"""Factor on what fresh draws show along slow directions: what is found of these with noise is less slow than they
are."""
BY_CHANCE = 3.0
"""What fresh draws show along a slow direction counts if it is more than so many times what noise alone shows on
average, which happens in one look of twelve. At 1 it is one of three, each of which asks for more draws for nothing."""
MOST_LANCZOS, SLOW_STEP, MOST_SHARES = 12, 0.1, 16
"""Steps of Lanczos, each of which fits a surface so many standard deviations away, and most shares of the draws that
show the noise. With half as many steps the slowest direction of a local level with 80 states is found in part."""
MORE, MORE_FRESH = 1.5, 1.4
"""Largest factor on all draws where fresh ones show that the bound still rises along a slow direction, and that on the
fresh draws that are needed: they are a smaller share of all once they are among them, and q may move."""
MOST_LEAPS = 24
"""Most leaps that one polishing makes."""
MOST_POLISHED = 60_000
"""Draws, summed over the leaps of one polishing, that its surfaces may be fitted to: a surface of very many draws
takes seconds."""
REMEMBERED_LEAPS = 5
"""Earlier leaps that Anderson's acceleration combines."""
POLISHED_SHARE = 0.5
"""Polishing stops where less than this share of the effective draws is left: further away the draws say little."""

# --- the trial ------------------------------------------------------------------------------------------

MOST_TRIALS = 8
"""How often a result, and those that replace it, may be tried before the search gives up."""
MOST_REPEATED = 4
"""Draws without a finite value beside which two points are evaluated."""
BESIDE = 0.02
"""Standard deviations between a draw that failed and the two points beside it."""
SCATTERED = 0.03
"""Share of draws without a finite value above which a probe of the tails may have failed twice by accident."""
NEARER = 0.99
"""Factor on the distance of probes that failed, at a second hearing."""
SAME_VALUE = 0.01
"""Nats by which two values of the same draw may differ: noise of this size is far below what a gap is about."""
OUTLYING = 5.0
"""Two values of the same draw that differ by more than this many standard deviations of the noise show that there is
more of it."""
ROUNDING = 3e-7
"""The same, as a share of the value: a function that computes in single precision rounds to 1.2e-7 of it."""
SUSPICIOUS_TAIL = 30.0
"""Nats from 5.5 to 16.5 standard deviations; where the density falls by less it is looked at farther out. The logarithm
of a Gaussian falls by 100 nats."""
REMOTE, REMOTE_RATIO = 8, 1.5
"""Where a density rises from 5.5 to 16.5 standard deviations, or hardly falls from there to 49.5, it is looked at in so
many places beyond, each so many times as far out as the one before."""
LEAST_ASKEW, ASKEW, MOST_FOUND = 2, 10.0, 2
"""From so many parameters on, a probe at 16.5 standard deviations that the surface misses by more than so many nats
shows a direction to look in, and that direction, if it is nearly flat, a second one. A Gaussian falls by 136 nats to
there."""
HEAVY_TAIL, HEAVY_DRAWS, HEAVY_STRETCH = 15.0, 60.0, 9.0
"""Nats from 5.5 to 16.5 standard deviations; where the density falls by less, as with Student's tails and exponential
ones, the bound hardly depends on the width of q, so that errors of its gradient cost several times what a surface
states. At least so many effective draws are made then, and the gap is stretched by 1 + 9/d, or by 4 if d is below 3:
the width is one of many directions if there are many parameters."""
RARE_STRETCH = 2.0
"""The gap is stretched by this factor where something was met that few draws show: of what is rare a surface sees too
little to know its own noise well."""
SLOWEST_FALL = 1.05
"""Smallest power of the distance with which a proper density falls along an axis; 1 would be improper."""
UNTRIED = 0.1
"""Share of the variance of what a quadratic misses that a search without a certificate adds to its gap: a fifth of the
divergence from the posterior, which bounds what any Gaussian may gain."""
TAIL_NATS = 1000.0
"""Nats by which a surface may miss a point five standard deviations out, in units of the tolerance. A quadratic wall
that begins two standard deviations out lowers the bound by 1/1500 of what it takes away at five."""
TAIL_GROWTH = 100.0
"""The same, in units of what the quadratic misses at draws from q: a term of the fourth degree is about 100 times as
large five standard deviations out as on average."""
LEAST_MISS, LEAST_GROWTH = 100.0, 0.04
"""The same nearer to the mean: at least so many tolerances, and this share of the growth."""
FEW_DIMENSIONS = 10
"""Up to so many parameters the terms that a quadratic misses are taken to be independent of each other; of more, which
are all of the fourth degree, they add up far from the mean."""
TAIL, SHOWN = 2.0, 1.0
"""A draw is a witness if it lies further out on the axis than so many standard deviations, and the surface misses it by
more than so many nats, or half as many as it misses the probe by, if that is less."""
WITNESSES = 3.0
"""An axis with so many witnesses is no longer suspect: the surface has taken them into account. The number grows with
the fourth root of what the surface misses, since few draws meet a steep wall."""
MOST_SUSPECTS = 4
"""Axes for which witnesses are called at once."""
WIDER, REACHING = 3.0, 0.1
"""How many times as wide as q the draws are spread along the axis of a suspect, and the share that lies beyond some
four standard deviations on either side."""
MOVED = 0.3
"""A trial still counts for a Gaussian whose means and logarithms of standard deviations differ by less than this, in
standard deviations."""
LOOKOUTS, AROUND, DISPERSED = 3, 2, 2.0
"""With gradients: ascents that look for a higher mode, from draws of the initial Gaussian with so many times its
standard deviations, and from draws of the result with twice as many times its own."""
SURPRISED, SURPRISE, MOST_SURPRISES = 2.0, 0.05, 3
"""Draws that verify a result must not raise what a quadratic misses by more than this factor (plus so many nats): if
they do, it is verified again, but not for ever: the trial may know why."""
CONTRADICTION = 10.0
"""Values contradict gradients if a quadratic in what the gradients leave of them gains more nats than this many times
the noise of both (and the tolerance)."""
CHORDS, MOST_HALVINGS, JUMP_WITHIN = 16, 16, 0.01
"""Chords between draws on which values and gradients differ most, how often parts of one are halved, and the share of a
chord within which a difference is a jump. A jump with a sixth of q on its far side is met by every fourth chord."""
CONTRADICTORY = 4
"""Chords that must not come right in the end for a gradient to be wrong: on one, it may just be wild."""
MATTERING = 0.1
"""Chords go between draws with at least this share of the mean weight."""
HARMLESS_JUMP, HARMLESS_SHARE = 1.4, 0.01
"""Nats, in units of the root of the tolerance, by which values and gradients may differ: such a jump costs a quarter of
the tolerance at most. To that comes a share of what they differ by on the whole chord: it may have a steep wall."""
MOST_COMPARED = 2e8
"""Multiplications beyond which values and gradients are compared on the axes of the frame only."""
JUMP = 3.0
"""Values jump if what a quadratic misses of them has a standard deviation of more than this many times the largest that
their gradients allow: few draws may show more of one than of the other."""
MOST_BY_BOTH = 200
"""Coefficients up to which, with gradients, a surface of the values is fitted too, where that of gradients is noisy."""
MOST_VALUED = 1000
"""Draws beyond which it is not, unless the values jump: its polynomials take seconds, and gradients know more."""
DIAGONALS = 2
"""Diagonals of the frame on which the tails are looked at besides the axes, if there is more than one parameter."""
OUTSIDE, HIGH, ACROSS = 2.5, 2.0, 4.0
"""A point outside of q, by more than so many standard deviations (plus √d), may belong to another mode if it is at most
so many nats (plus d/2) lower than the highest draw, or four nats if it lies across a valley: if it is higher than what
the surface predicts half-way."""
BETTER = 3.0
"""Another mode is left again if its bound is lower by more than this many times the gap that is expected there."""
FEW_DOUBT = 1.0
"""Nats (plus d/2) by which a surface of fewer draws than a certificate needs may state too low a bound there."""
UNEXPECTED = 3.0
"""Nats by which such a point must be higher than the surface predicts."""
RISEN = 1.0
"""Nats by which a point must be higher than what the surface predicts and misses there for it to be on the slope of
another mode. It changes no search of ``benchmarks/zoo.py --max-dim 9 --seeds 1``: what smooth functions hide is taken
off before."""
PEAK, PEAK_BY_GRADIENTS = 1.0, 0.5
"""A point inside of q may be a narrow mode if the bound of q moved there would be higher by so many nats (plus d/2),
were f quadratic; by gradients the end of an ascent is one from 0.5 nats on, since its curvature is seen at once."""
WIDER_GAIN = 0.2
"""Nats that a much wider Gaussian must promise, by a few probes, to be looked at."""
COVERED = 7.0
"""Standard deviations between two modes up to which a Gaussian over both is looked at: of two equal normals it is the
better one up to 5.5 of them, and of wider ones up to more. Of three modes or more it always is."""
SURPASSING = 3.0
"""A result is not certified if another Gaussian, which led to no result, had a bound that is higher by this many
tolerances beyond three standard errors."""
BELIEVED = 1.0
"""Such a bound counts if its surface promises fewer nats than this: one that promises much may be wrong altogether."""
LAPLACE_DOUBT = 0.5
"""Nats (plus a tenth per parameter) by which Laplace's approximation of another mode may be lower than the bound so far
and be followed still."""
MOST_VISITS_BY_VALUES, MOST_VISITS_BY_GRADIENTS = 2, 4
"""How often the search leaves a result to look at another mode: by values it takes an evolution to get there."""
VISIT_SHARE = 0.33
"""With gradients, the share of the evaluations before a visit after which it ends if `BETTER` times its gap does not
reach the result's bound: on a long ridge it may come near by small steps, for thousands of them."""
LEAST_AXES, TRIAL_SHARE = 4, 0.03
"""With gradients so many axes are tried at least, and one for this share of the evaluations."""

# --- far away -------------------------------------------------------------------------------------------

FAR = 3.0
"""By values, the posterior is far away if the best of the first points, the initial mean and one standard deviation to
either side of it along each axis, is so much above their median, in units of d/2 + 1 nats."""
APPROACH, MOST_APPROACHED = 20, 60
"""Evaluations per parameter (plus two) after which an approach is given up, and parameters above which none is made."""
ONWARD, MOST_ONWARD = 5, 4
"""Evaluations per parameter (plus two) of an approach that goes on from a surface, and how often that happens: on raw
data a survey shows how all directions bend, but not how far the way is."""
ONWARD_RADIUS, ONWARD_SHARE = 10.0, 0.8
"""What it may gain is the promise for the mean within so many standard deviations (times √d). A leap that promises more
than this share of it is taken instead: where the target is Gaussian leaps arrive at once."""
SURVEYED = 0.5
"""Factor on the standard deviations of the Gaussian that an approach ends with: near enough to a point any density is
quadratic."""
MOST_EVOLUTIONS = 3
"""How often evolution looks for another region before the search gives up."""
MOST_BLURRED = 1
"""How often a surface whose low values were raised is refined before evolution takes over."""
FLOOR = 10.0
"""Where a surface predicts little, low values are raised to a floor, which is this many times d/2 + 1 nats below the
best value."""
SPREAD = 1.5
"""Evolution has arrived when the best of its last values is less than this above their median, in units of d/2 + 1
nats. The values of draws from a Gaussian spread about as much."""
PROMISE = 0.25
"""An ascent has arrived when its next step promises fewer nats per parameter than this (plus half a nat in all)."""
NARROW = 0.3
"""Standard deviation of the draws that show the curvature, in units of the standard deviation that belongs to the
largest curvature met by the ascent."""
MOST_RETREATS = 16
"""How often, with gradients, a narrower Gaussian is tried before the search gives up."""
FEW_RETREATS = 3
"""The same on a visit to another mode, after which the search returns to its result."""
ABOUT_THE_MEAN = 4
"""Retreats that keep the mean; later ones are centred at the best draw."""

STUCK = 30
"""Evaluations per parameter (plus ten) after which a search by gradients that has not climbed the bound does so."""
MOST_STRIDING, STRIDES_SHARE = 100, 0.75
"""Parameters above which no strides are made, since a pattern of all their pairs takes long, and the share of the
evaluations left that strides may take: they end when a step promises less than the noise of their draws."""
STRIDES_FROM = 0.3
"""Factor on the initial standard deviations, from which strides begin: near enough to a point any density is quadratic.
Under a horseshoe prior of 42 parameters 4 of 8 strides come within three nats of the optimum with 1, all with 0.03 to
0.3."""
STRODE = 1.0
"""Nats within which strides come of the optimum: from there, surfaces need fewer draws."""
LATE_CLIMBS = 3
"""Most climbs of the bound, from dispersed starts, if ascents from elsewhere have shown several modes."""
CLIMB_SHARE, CLIMB_COST = 0.33, 400
"""The share of the evaluations so far that such climbs may take, and what one of them takes."""
DIAGONAL_DOUBT = 1.0
"""Nats (plus a tenth per parameter) by which a diagonal Gaussian may be below a result and still be worth a visit: with
correlations it may be better."""

# --- several starts, and what is affordable -------------------------------------------------------------

SCREENING_GAP = 0.5
"""A start is compared with the others once it is expected to be fewer nats than this below its optimum."""
DIFFERENT = 3.0
"""Two optima are different if their means are further apart than this many posterior standard deviations in some
coordinate."""
FULL_QUADRATIC = 900
"""A full quadratic with at most this many coefficients (d = 40) is fitted whatever the family is."""
MOST_COEFFICIENTS = 1000
"""Coefficients beyond which a surface costs too many draws: the largest d is 43 if full, 499 if diagonal."""
DIAGONAL_SUMS_ABOVE = 200
"""Parameters above which a diagonal family with gradients is fitted by sums over pairs of draws instead of surfaces,
which is sooner from about here on (``benchmarks/large.py logistic --sizes 1000``: 38 s of CPU, 196 by surfaces)."""
MOST_PARAMETERS = 1000
"""Parameters beyond which a search costs too much even with gradients: it takes some tens of them per parameter."""
MOST_GRADIENTS = 600
"""Default of the largest number of evaluations of a search by gradients, per parameter (plus ten). A search that
converges ends long before; the strongest ridges of the zoo take 250."""
TOLERANCE, MANY = 0.01, 50
"""The default tolerance in nats, and the number of parameters from which on it, and what a quadratic may miss, grow: a
tolerance in proportion to d keeps the error of each marginal the same."""
